/** What people are told in a state of the model, and the truth about this state, which no surface may read. */
import type { NodeRolloutStatus } from '../../src/api/refit/node-rollout.ts';
import type { ShownPlan } from '../../src/cli/status/json-form.ts';
import type { PlanReading } from '../../src/engine/explain/plan-reading.ts';
import type { Role } from '../../src/engine/model/rollout.ts';

/** Everything that is told about the plan at one time: a rendering. */
export interface Told {
  /** True if a leader holds the Lease. */
  readonly hasLeader: boolean;
  readonly now: number;
  readonly reading: PlanReading;
  /** The JSON form. */
  readonly shown: ShownPlan;
  /** What `refit status` prints. */
  readonly status: string;
  /** What `refit status -o wide` prints. */
  readonly wide: string;
  /** What `refit why` prints. */
  readonly why: string;
  /** What `refit why NODE` prints, by the name of the node. */
  readonly whyOf: ReadonlyMap<string, string>;
  /** What the leader writes to the NodeRollout; undefined if it first has to record something, or if there is no leader. */
  readonly nodeRollout: NodeRolloutStatus | undefined;
}

/** The truth about one node. */
export interface TrueNode {
  readonly name: string;
  readonly role: Role;
  /** The version that the service runs; undefined while the service does not answer, or is about to restart. */
  readonly runs: string | undefined;
  /** The version that the object of the node shows, as the kubelet or k0s reports it; undefined if it shows none. */
  readonly reports: string | undefined;
  /** The version of the last signal; undefined if the node was never signalled. */
  readonly signalled: string | undefined;
  /** True if the object of the node is deleted. */
  readonly isGone: boolean;
  /** True if the node waits for a decision of a person: somebody holds it, or nobody has approved its wave. */
  readonly awaitsPerson: boolean;
}

/** The truth about a state. */
export interface Truth {
  /** The versions of the present plan, in the order of its commands. */
  readonly asked: readonly string[];
  readonly isPaused: boolean;
  readonly isAborted: boolean;
  /** True if the plan rolls another run back. */
  readonly isRollBack: boolean;
  /** The runs that leaders have admitted, as `<uid of the plan>/<id>`; undefined if nobody has counted them. */
  readonly admitted: readonly string[] | undefined;
  /** The names of the nodes that a leader has recorded as targets of the present run. */
  readonly targets: ReadonlySet<string>;
  /** The nodes that the present plan names. */
  readonly nodes: readonly TrueNode[];
}

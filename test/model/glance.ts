/** The data that predicates receive: one complete state. */
import type { KubeObject } from '../../src/kube/resources.ts';
import type { SignalData } from '../../src/signal/annotations.ts';
import type { NodeSpec } from './cluster.ts';
import type { NodeState } from './node-state.ts';
import type { Recorded } from './plan-words.ts';

export interface Glance {
  /** The id of the plan. */
  readonly run: string;
  /** The id of the run that the plan rolls back; undefined if it does not roll back a run. */
  readonly rollsBack: string | undefined;
  /** The generation of the plan: one more after each change of its spec. */
  readonly generation: number;
  /** The versions of the plan's commands. */
  readonly versions: readonly string[];
  /** The state in the status of the plan. */
  readonly state: string | undefined;
  readonly isAborted: boolean;
  /** True once somebody has approved the second wave. */
  readonly isApproved: boolean;
  /** Names of targets that somebody ordered to try again. */
  readonly triedAgain: readonly string[];
  /** The state that the status of the plan records for each target of each command. */
  readonly recorded: readonly Recorded[];
  readonly nodes: readonly NodeGlance[];
}

export interface NodeGlance extends NodeState {
  readonly spec: NodeSpec;
  /** The object as it is on the API server. */
  readonly object: KubeObject;
  /** The signal of the object; undefined if it has no signal. */
  readonly signal: SignalData | undefined;
}

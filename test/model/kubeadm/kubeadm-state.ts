/** The state of an exploration of `refit kubeadm apply`, and what its invariants read of it. */
import type { Part } from '../../../src/dialects/kubeadm/host/host.ts';
import type { ConfigMap, Node } from '../../../src/kube/resources.ts';
import type { Drained } from '../deeds.ts';
import type { HookJob } from '../hook-runs.ts';
import type { Contents, NodePast } from '../object-states.ts';
import type { KubeadmMove } from './kubeadm-objects.ts';

/**
 * What a procedure does. begun: it has told nothing yet · staging: it stages the binaries · draining: it waits for the
 * drain · drained: the leader has told it that the node is drained · touching: it is about to tell that it changes the
 * host · a part: the script of this part runs · verifying: all parts are replaced · finishing and failing: it has ended,
 * and is about to tell so · ended: the Node shows its end.
 */
export type Doing =
  | 'begun'
  | 'staging'
  | 'draining'
  | 'drained'
  | 'touching'
  | Part
  | 'verifying'
  | 'finishing'
  | 'failing'
  | 'ended';

/** The work of the process on one host. It is lost together with the process. */
export interface Procedure {
  readonly node: string;
  /** The uid of the run, as the leader named it when it began the work. */
  readonly rollout: string;
  /** The `since` of the target, which names the attempt. */
  readonly attempt: string;
  readonly version: string;
  readonly parts: readonly Part[];
  readonly doing: Doing;
}

/** The procedures of the process, by the keys of their targets. */
export type Procedures = Readonly<Record<string, Procedure>>;

/** What the model remembers of one host, and no leader can read. */
export interface HostPast extends NodePast {
  /** The version of the static pods and of kubeadm's configuration. */
  readonly kubeadm: string;
  readonly kubelet: string;
  /** True if the certificates of the host end soon. */
  readonly needsRenewal: boolean;
  /** True if a person cordoned the node while nobody else had cordoned it. */
  readonly keptClosed: boolean;
  /** True after a run has begun to replace the kubelet or what belongs to it, until the Node shows that a run has verified the host. */
  readonly isHalfDone: boolean;
  /** The parts that the journal of the host names as done, each with the uid of its run. */
  readonly journal: readonly string[];
  /** The part whose script still runs although its process was killed, with the uid of its run; empty if there is none. */
  readonly detached: string;
  /** The targets whose work has finished, each with the uid of its run. */
  readonly finished: readonly string[];
  /** The attempts for which a Job of the hook was created, the oldest first. */
  readonly hooked: readonly string[];
  /** True if work began on the host for a target that had finished. */
  readonly begunAgain: boolean;
  /** True if the node was cordoned or its drain began before the Job of its hook had succeeded. */
  readonly closedUnhooked: boolean;
  /** True if a script changed the kubelet or what belongs to it while the node had pods or was not cordoned. */
  readonly changedUndrained: boolean;
}

/** A Job of a hook, with the run and the host that it belongs to. */
export interface HostHookJob extends HookJob {
  readonly node: string;
  readonly rollout: string;
}

export interface KubeadmState {
  readonly objects: Contents;
  readonly drains: Drained;
  readonly procedures: Procedures;
  /** The attempts that the process has begun, the oldest first. */
  readonly begun: readonly string[];
  readonly hookJobs: readonly HostHookJob[];
  /** The moves that may still be made. */
  readonly moves: readonly KubeadmMove[];
  readonly past: readonly HostPast[];
}

/** One state as the invariants read it. */
export interface KubeadmGlance {
  readonly plan: ConfigMap;
  readonly nodes: ReadonlyMap<string, Node>;
  readonly procedures: Procedures;
  readonly begun: readonly string[];
  readonly past: readonly HostPast[];
}

export function freshPast(name: string, version: string, needsRenewal: boolean): HostPast {
  return {
    name,
    kubeadm: version,
    kubelet: version,
    needsRenewal,
    keptClosed: false,
    isEmpty: false,
    isHalfDone: false,
    journal: [],
    detached: '',
    finished: [],
    hooked: [],
    begunAgain: false,
    closedUnhooked: false,
    changedUndrained: false,
  };
}

const ENDS: readonly Doing[] = ['finishing', 'failing', 'ended'];
const OPEN: readonly Doing[] = ['begun', 'staging', 'draining', 'drained'];

/** Returns the state of the procedure as `HostUpgrades.stateOf` reports it. */
export function stateOf({ doing }: Procedure): 'open' | 'busy' | 'ended' {
  if (ENDS.includes(doing)) return 'ended';
  return OPEN.includes(doing) ? 'open' : 'busy';
}

/** Returns the names of the hosts on which a procedure or a script works. */
export function atWork({
  procedures,
  past,
}: Pick<KubeadmState, 'procedures' | 'past'>): readonly string[] {
  const working = Object.values(procedures)
    .filter((each) => stateOf(each) !== 'ended')
    .map(({ node }) => node);
  const detached = past.filter((each) => each.detached !== '').map(({ name }) => name);
  return [...new Set([...working, ...detached])];
}

/** Returns the name of a part of a run in a journal. */
export function entryOf(rollout: string, part: Part): string {
  return `${rollout} ${part}`;
}

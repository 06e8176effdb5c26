/**
 * Decides which recorded failures and which Jobs are outdated. Refit ignores an outdated failure or Job, and tries the
 * node again.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { Target } from '../../../engine/model/rollout.ts';
import { annotated, type Job, type Node, readyCondition } from '../../../kube/resources.ts';
import { listed } from '../../../util/phrases.ts';
import { conditionOf, holds } from './conditions.ts';
import type { CattleConfig } from './config.ts';
import { type JobWork, jobOf, ttlOf } from './job.ts';
import { hashOn, MACHINE_ANNOTATION } from './names.ts';
import { attemptOn } from './node-records.ts';
import { isOutdated } from './stamps.ts';

/** The type of Refit's own condition that lists the nodes whose Job failed. */
export const FAILED_TYPE = 'RefitFailedNodes';
/**
 * The most milliseconds by which the clock of Kubernetes may differ from the clock of this process. Kubernetes uses its
 * own clock to decide when it deletes a failed Job.
 */
const SKEW_MS = 30_000;

/** A failed target. Its state is `unsupported` if the API server refused the Job, and `failed` if the Job failed. */
type Failure = Pick<Target, 'since' | 'state'>;

export interface Failures {
  /** The failures by the name of the node. `since` is the time when the failure was recorded. */
  readonly nodes: ReadonlyMap<string, Failure>;
  /** The generation that the Plan had when the failures were recorded; undefined if none is recorded. */
  readonly generation: number | undefined;
}

export function failuresText(failed: readonly Target[], { metadata }: CattlePlan): string {
  const names = failed.map(
    ({ name, state, since }) => `${name}${state === 'failed' ? '' : REFUSED} at ${since}`,
  );
  return `${names.toSorted().join(', ')}; generation ${metadata.generation ?? 0}`;
}

const REFUSED = ' refused';

/** Returns the sentence for a failed node whose own message is not known any more. Its Job may have failed or succeeded. */
export const failureOn = (name: string): string =>
  `the attempt failed on Node ${name}: run refit why ${name}`;

/** The words before the further nodes in the message of the condition `Complete`. */
const FURTHER = '; further failed nodes: ';
const MOST_FURTHER = 10;

/** Returns the message with the names of the further failed nodes; the same message if there are none. */
export function withFurtherNodes(message: string, further: readonly string[]): string {
  const names = listed(further.toSorted(), MOST_FURTHER);
  return further.length === 0 ? message : `${message}${FURTHER}${names}`;
}

/** Returns the message of the condition `Complete` without the names of further nodes: what it says about one node. */
export function withoutFurtherNodes(message: string): string {
  const at = message.lastIndexOf(FURTHER);
  return at < 0 ? message : message.slice(0, at);
}

export function recordedFailures(plan: CattlePlan): Failures {
  const [names = '', generation] =
    conditionOf(plan, FAILED_TYPE)?.message?.split('; generation ') ?? [];
  const entries = names.split(', ').map((entry): [string, Failure] => {
    const [name = '', since = ''] = entry.split(' at ');
    const state = name.endsWith(REFUSED) ? 'unsupported' : 'failed';
    return [name.replace(REFUSED, ''), { state, since }];
  });
  return {
    nodes: new Map(entries),
    generation: generation === undefined ? undefined : Number(generation),
  };
}

/**
 * Returns true if `time` is before the creation of the Node. In that case, another Node had this name at that time. If
 * the creation time is after the last heartbeat, the result is false, because the clock that set the creation time was
 * wrong.
 */
function isBefore(time: string | undefined, node: Node): boolean {
  const made = Date.parse(node.metadata.creationTimestamp ?? '');
  return (
    Date.parse(time ?? '') < made &&
    made <= Date.parse(readyCondition(node)?.lastHeartbeatTime ?? '')
  );
}

/**
 * Returns a text that identifies the machine of a Node; empty if the kubelet reports no identity.
 * The Node itself is not enough, because some clouds create it again at each start of the machine.
 */
const machineOf = ({ status: { nodeInfo } = {} }: Node): string =>
  [nodeInfo?.machineID, nodeInfo?.systemUUID].filter(Boolean).join('/');

export const withMachine = (job: Job, node: Node): Job =>
  annotated(job, { [MACHINE_ANNOTATION]: machineOf(node) });

/** Remembers Jobs in the memory of this process, in order to decide which failures no longer count. */
export interface Attempts {
  /**
   * Returns the Job of a node in progress; undefined if there is none. `present` is the Job that exists now. If
   * Kubernetes has deleted a complete Job that this process has seen, returns that Job.
   */
  recalled(
    plan: CattlePlan,
    nodeName: string,
    hash: string,
    present: Job | undefined,
  ): Job | undefined;
  /** Forgets the Jobs of all nodes that are not in progress, so that a node that starts again gets a new Job. */
  keep(plan: CattlePlan, atWork: readonly Target[]): void;
  /**
   * Returns true if the Job belongs to an earlier Node with the same name, or if it failed and would
   * be rendered differently now. Remembers when a Job failed.
   */
  isObsolete(job: Job, made: JobWork): boolean;
  /**
   * Returns true if a recorded failure no longer counts. Call it only for a node whose failed Job
   * is gone.
   */
  isForgotten(node: Node, plan: CattlePlan, failures: Failures, now: number): boolean;
}

export function attemptsOf(config: CattleConfig): Attempts {
  const settings = config.job;
  let begun: number | undefined;
  /** The time at which the last Job failed, for each plan and node. The failure may be recorded much later. */
  const ends = new Map<string, string | undefined>();
  /** The last Job that this process saw, by uid of the plan and name of the node. */
  const lastJobs = new Map<unknown, Map<string, Job>>();
  const keyOf = (plan: CattlePlan, node: Node): string =>
    `${plan.metadata.uid} ${node.metadata.name}`;
  return {
    recalled(
      plan: CattlePlan,
      nodeName: string,
      hash: string,
      present: Job | undefined,
    ): Job | undefined {
      const own = lastJobs.getOrInsertComputed(plan.metadata.uid, () => new Map());
      if (present) own.set(nodeName, present);
      const last = own.get(nodeName);
      return last && holds(last, 'Complete') && hashOn(last, plan) === hash ? last : present;
    },
    keep({ metadata: { uid } }: CattlePlan, atWork: readonly Target[]): void {
      const names = new Set(atWork.map(({ name }) => name));
      for (const name of lastJobs.get(uid)?.keys() ?? [])
        if (!names.has(name)) lastJobs.get(uid)?.delete(name);
    },
    isObsolete(job: Job, made: JobWork): boolean {
      const machine = machineOf(made.node);
      const isSame = machine !== '' && job.metadata.annotations?.[MACHINE_ANNOTATION] === machine;
      const failure = holds(job, 'Failed');
      // A node can also fail after its Job is complete, if its kubelet does not report the version.
      const end = (failure ?? holds(job, 'Complete'))?.lastTransitionTime;
      if (end !== undefined) ends.set(keyOf(made.plan, made.node), end);
      const times = [job.metadata.creationTimestamp, end];
      if (!isSame && times.every((time) => isBefore(time, made.node))) return true;
      return failure !== undefined && isOutdated(job, jobOf(config, { ...made, settings }));
    },
    isForgotten(node: Node, plan: CattlePlan, { nodes, generation }: Failures, now: number) {
      begun ??= now;
      if (generation !== undefined && generation !== (plan.metadata.generation ?? 0)) return true;
      const { state, since = '' } = nodes.get(node.metadata.name) ?? {};
      const end = ends.get(keyOf(plan, node)) ?? since;
      if (isBefore(end, node)) return true;
      // The API server refused the Job. If this process started after the refusal, it may have other settings for Jobs,
      // so the API server may accept the Job now.
      if (state === 'unsupported') return Date.parse(since) < begun;
      // The Job succeeded, and the node failed later, for example because its kubelet kept its version. So the failure says
      // nothing about the time at which Kubernetes deletes the Job.
      if (attemptOn(node, plan, plan.status?.latestHash ?? '')?.succeeded !== undefined)
        return false;
      const age = now - Date.parse(end);
      // The failed Job is younger than the age at which Kubernetes deletes a finished Job. So a person has deleted it,
      // because Refit is to try the node again. If the time of the failure is in the future, this rule is not used.
      // Otherwise, after a clock was set back, Refit would try the same node again and again, and all other nodes would
      // wait.
      return age > -SKEW_MS && age < ttlOf({ plan, settings }) * 1000 - SKEW_MS;
    },
  };
}

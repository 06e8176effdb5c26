/** Tells which failures are over: the Plan has changed since, or somebody deleted the Job. Then the node is tried again. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { Target } from '../../../engine/model/rollout.ts';
import { annotated, type Job, type Node, readyCondition } from '../../../kube/resources.ts';
import { conditionOf, holds } from './conditions.ts';
import type { CattleConfig } from './config.ts';
import { jobOf, type Rendering, ttlOf } from './job.ts';
import { hashOn, MACHINE_ANNOTATION } from './names.ts';
import { isOutdated } from './stamps.ts';

/** A condition of our own: the nodes whose Job failed. */
export const FAILED_TYPE = 'RefitFailedNodes';
/** Before that Kubernetes itself may have deleted a failed Job, by a clock that differs a little from ours. */
const SKEW_MS = 30_000;

/** `unsupported`: the API server refused its Job. */
type Failure = Pick<Target, 'since' | 'state'>;

export interface Failures {
  /** By name of the node; `since` is when each was recorded. */
  readonly nodes: ReadonlyMap<string, Failure>;
  /** That of the Plan when they were. */
  readonly generation: number | undefined;
}

export function failuresText(failed: readonly Target[], { metadata }: CattlePlan): string {
  const names = failed.map(
    ({ name, state, since }) => `${name}${state === 'failed' ? '' : REFUSED} at ${since}`,
  );
  return `${names.toSorted().join(', ')}; generation ${metadata.generation ?? 0}`;
}

const REFUSED = ' refused';

/** Where the words of its Job are not known any more, or not told. */
export const failureOn = (name: string): string =>
  `a Job failed on Node ${name}: run refit why ${name}`;

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

/** True if the Node was made later: another machine had its name. One that was made by a wrong clock, in the future, does not count. */
function isBefore(time: string | undefined, node: Node): boolean {
  const made = Date.parse(node.metadata.creationTimestamp ?? '');
  return (
    Date.parse(time ?? '') < made &&
    made <= Date.parse(readyCondition(node)?.lastHeartbeatTime ?? '')
  );
}

/** A cloud may make the Node anew at each start of the machine. Empty if the kubelet does not say which that is. */
const machineOf = ({ status: { nodeInfo } = {} }: Node): string =>
  [nodeInfo?.machineID, nodeInfo?.systemUUID].filter(Boolean).join('/');

export const withMachine = (job: Job, node: Node): Job =>
  annotated(job, { [MACHINE_ANNOTATION]: machineOf(node) });

export type Attempts = ReturnType<typeof attemptsOf>;

export function attemptsOf(config: CattleConfig) {
  const settings = config.job;
  let begun: number | undefined;
  /** When the last Job of a plan on a node failed: that may be recorded much later. */
  const ends = new Map<string, string | undefined>();
  /** By plan and node at work: the last Job that was seen. */
  const lastJobs = new Map<unknown, Map<string, Job>>();
  const keyOf = (plan: CattlePlan, node: Node): string =>
    `${plan.metadata.uid} ${node.metadata.name}`;
  return {
    /** The Job of a node at work, also one that Kubernetes deleted while the node rests, or is not Ready. */
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
    /** Forgets those of other nodes: who starts again gets a Job again. */
    keep({ metadata: { uid } }: CattlePlan, atWork: readonly Target[]): void {
      const names = new Set(atWork.map(({ name }) => name));
      for (const name of lastJobs.get(uid)?.keys() ?? [])
        if (!names.has(name)) lastJobs.get(uid)?.delete(name);
    },
    /** True for a Job of an earlier Node of that name, and for a failed one that the Plan would no longer make like this. Remembers its end. */
    isObsolete(job: Job, made: Omit<Rendering, 'settings'>): boolean {
      const machine = machineOf(made.node);
      const isSame = machine !== '' && job.metadata.annotations?.[MACHINE_ANNOTATION] === machine;
      const failure = holds(job, 'Failed');
      if (failure) ends.set(keyOf(made.plan, made.node), failure.lastTransitionTime);
      const times = [
        job.metadata.creationTimestamp,
        (failure ?? holds(job, 'Complete'))?.lastTransitionTime,
      ];
      if (!isSame && times.every((time) => isBefore(time, made.node))) return true;
      return failure !== undefined && isOutdated(job, jobOf(config, { ...made, settings }));
    },
    /** True for a recorded failure without a Job that does not count any more. */
    isForgotten(node: Node, plan: CattlePlan, { nodes, generation }: Failures, now: number) {
      begun ??= now;
      if (generation !== undefined && generation !== (plan.metadata.generation ?? 0)) return true;
      const { state, since = '' } = nodes.get(node.metadata.name) ?? {};
      const end = ends.get(keyOf(plan, node)) ?? since;
      if (isBefore(end, node)) return true;
      // Another process may have other settings for Jobs.
      if (state === 'unsupported') return Date.parse(since) < begun;
      const age = now - Date.parse(end);
      // To a clock that was set back, every failure looks over: one node would be tried without end, and no other.
      return age > -SKEW_MS && age < ttlOf({ plan, settings }) * 1000 - SKEW_MS;
    },
  };
}

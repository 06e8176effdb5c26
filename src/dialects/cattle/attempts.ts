/** Tells which failures are over: the Plan has changed since, or somebody deleted the Job. Then the node is tried again. */
import type { CattlePlan } from '../../api/cattle/plan.ts';
import type { Job, Node } from '../../kube/types.ts';
import { conditionOf } from './conditions.ts';
import type { CattleConfig } from './config.ts';
import { jobOf, type Rendering, ttlOf } from './job.ts';
import { isOutdated } from './stamps.ts';

/** A condition of our own: the nodes whose Job failed. */
export const FAILED_TYPE = 'RefitFailedNodes';
/** Before that Kubernetes itself may have deleted a failed Job, by a clock that differs a little from ours. */
const SKEW_MS = 30_000;

export interface Failures {
  /** When each was recorded (RFC 3339), by name of its node. */
  readonly since: ReadonlyMap<string, string>;
  /** That of the Plan when they were. */
  readonly generation: number | undefined;
}

export function failuresText(since: ReadonlyMap<string, string>, { metadata }: CattlePlan): string {
  const names = [...since].map(([name, at]) => `${name} at ${at}`).toSorted();
  return `${names.join(', ')}; generation ${metadata.generation ?? 0}`;
}

export function recordedFailures(plan: CattlePlan): Failures {
  const [names = '', generation] = conditionOf(plan, FAILED_TYPE)?.message?.split('; generation ') ?? [];
  const since = names.split(', ').filter((name) => name !== '');
  return {
    since: new Map(since.map((entry) => entry.split(' at ')).map(([name = '', at = '']) => [name, at])),
    generation: generation === undefined ? undefined : Number(generation),
  };
}

type Made = Omit<Rendering, 'settings' | 'node'> & { readonly node: Node | undefined };

export interface Attempts {
  /** True for a failed Job that the Plan would no longer make like this. */
  isObsolete(job: Job, made: Made): boolean;
  /** True for a recorded failure without a Job that does not count any more. */
  isForgotten(name: string, plan: CattlePlan, failures: Failures, now: number): boolean;
}

export function attemptsOf(config: CattleConfig): Attempts {
  const settings = config.job;
  return {
    isObsolete: (job, { node, ...made }) =>
      node !== undefined && hasFailed(job) && isOutdated(job, jobOf(config, { ...made, node, settings })),
    isForgotten(name, plan, { since, generation }, now) {
      if (generation !== undefined && generation !== (plan.metadata.generation ?? 0)) return true;
      return now < Date.parse(since.get(name) ?? '') + ttlOf({ plan, settings }) * 1000 - SKEW_MS;
    },
  };
}

function hasFailed({ status }: Job): boolean {
  return (status?.conditions ?? []).some(({ type, status: is }) => type === 'Failed' && is === 'True');
}

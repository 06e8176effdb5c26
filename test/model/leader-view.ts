/** What leaders may observe: every mixture of versions of all objects, and each leader's own knowledge. */
import type { DrainState } from '../../src/drain/running-drains.ts';
import { sameJson } from '../../src/util/json.ts';
import type { HookJob } from './hook-runs.ts';
import { product } from './product.ts';

/** What there is to see: versions as numbers of contents, oldest first. */
export interface Holdings {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Milliseconds for which somebody may have watched that nothing changed; 0 where no time has passed yet. */
  readonly watchedMs: number;
  readonly plan: readonly number[];
  /** By place in the configuration. */
  readonly nodes: readonly (readonly number[])[];
  /** By place: the oldest resourceVersion that may be seen. */
  readonly oldest: readonly number[];
  /** By place: what the leader's process knows of its drain of the node; undefined where it knows nothing. */
  readonly drains: readonly (DrainState['kind'] | undefined)[];
  /** By place: the Jobs of hooks for the node. */
  readonly hookJobs: readonly (readonly HookJob[])[];
  /** Controllers whose API server is not ready. */
  readonly down: readonly string[];
}

export interface Choice {
  /** Resource version. */
  readonly plan: number;
  /** By place: the resourceVersion that is seen. */
  readonly nodes: readonly number[];
  readonly drains: Holdings['drains'];
  readonly hookJobs: Holdings['hookJobs'];
  readonly down: readonly string[];
  readonly watchedMs: number;
}

/** What a leader is told by one version of one object, seen beside one version of the plan. */
export type Tells = (plan: number, place: number, version: number) => string;

/** Every mixture, but only the newest of those versions that tell a leader the same. */
export function* choicesOf(holdings: Holdings, tells: Tells): Generator<Choice> {
  const answers = holdings.down.length > 0 ? [[], holdings.down] : [[]];
  const watched = holdings.watchedMs > 0 ? [0, holdings.watchedMs] : [0];
  // Another process than the one that drains knows nothing of it.
  const drainsOf = product(
    holdings.drains.map((kind) => (kind === undefined ? [kind] : [kind, undefined])),
  );
  // A process that has not looked at a Job, or not lately, knows nothing of it, or of an earlier state.
  const jobsOf = product(
    holdings.hookJobs.map((jobs) =>
      jobs.length === 0 ? [jobs] : product(jobs.map(knownOf)).map((known) => known.flat()),
    ),
  );
  for (const plan of newestOfEach(holdings.plan, (version) => String(holdings.plan[version - 1]))) {
    const seen = holdings.nodes.map((versions, place) =>
      newestOfEach(versions, (version) => tells(plan, place, version), holdings.oldest[place]),
    );
    for (const nodes of product(seen)) {
      for (const drains of drainsOf) {
        for (const down of answers) {
          for (const watchedMs of watched) {
            for (const hookJobs of jobsOf) yield { plan, nodes, drains, hookJobs, down, watchedMs };
          }
        }
      }
    }
  }
}

/** True for what is seen once no cache lags, by the process that knows what is known. */
export function isFresh(choice: Choice, holdings: Holdings): boolean {
  const isSeen = choice.plan === holdings.plan.length && lagOf(choice, holdings) === '';
  const isKnown = choice.drains.every((kind, place) => kind === holdings.drains[place]);
  return (
    isSeen &&
    isKnown &&
    sameJson(choice.hookJobs, holdings.hookJobs) &&
    choice.down.length === holdings.down.length &&
    choice.watchedMs === holdings.watchedMs
  );
}

/** As one process may know it: as it is, as it was, or not at all. */
function knownOf(job: HookJob): readonly (readonly HookJob[])[] {
  return job.state === 'running' ? [[job], []] : [[job], [{ ...job, state: 'running' }], []];
}

/** For people: empty where nothing lags. */
export function lagOf({ plan, nodes }: Choice, holdings: Holdings): string {
  const lags = holdings.nodes.flatMap(({ length }, place) =>
    nodes[place] === length ? [] : [`node ${place + 1} at ${nodes[place]} of ${length}`],
  );
  if (plan !== holdings.plan.length) lags.unshift(`plan at ${plan} of ${holdings.plan.length}`);
  return lags.length === 0 ? '' : `, seeing ${lags.join(' and ')}`;
}

/** The newest resourceVersion of each kind, the newest kind first. */
function newestOfEach(
  versions: readonly number[],
  kindOf: (version: number) => string,
  oldest = 1,
): number[] {
  const newest = new Map<string, number>();
  for (let version = versions.length; version >= oldest; version--) {
    const kind = kindOf(version);
    if (!newest.has(kind)) newest.set(kind, version);
  }
  return [...newest.values()];
}

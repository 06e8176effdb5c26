/** What leaders may observe: every mixture of versions of all objects, and each leader's own knowledge. */
import type { DrainState } from '../../src/drain/running-drains.ts';
import { sameJson } from '../../src/util/json.ts';
import type { HookJob } from './hook-runs.ts';
import { product } from './product.ts';

/** Everything that a leader may observe. Versions are numbers of contents, the oldest first. */
export interface Holdings {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Milliseconds for which a leader may have observed that nothing changed; 0 if no time has passed yet. */
  readonly watchedMs: number;
  readonly plan: readonly number[];
  /** The versions of the node's object, by place in the configuration. */
  readonly nodes: readonly (readonly number[])[];
  /** The oldest resourceVersion that a leader may see, by place. */
  readonly oldest: readonly number[];
  /** The leader process's knowledge of its drain of the node, by place; undefined if it knows nothing. */
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

/** Returns as text what a leader learns from one version of one object, seen together with one version of the plan. */
export type Tells = (plan: number, place: number, version: number) => string;

/**
 * Returns every mixture of versions. If several versions of an object give a leader the same information, the mixtures
 * contain only the newest of these versions.
 */
export function* choicesOf(holdings: Holdings, tells: Tells): Generator<Choice> {
  const answers = holdings.down.length > 0 ? [[], holdings.down] : [[]];
  const watched = holdings.watchedMs > 0 ? [0, holdings.watchedMs] : [0];
  // Only the process that drains a node knows of the drain.
  const drainsOf = product(
    holdings.drains.map((kind) => (kind === undefined ? [kind] : [kind, undefined])),
  );
  // A process that has never read a Job knows nothing about it. A process that has not read the Job recently may know
  // an earlier state.
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

/** Reports whether the choice is the newest: no cache lags, and the process has all available knowledge. */
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

/** Returns what a process may know of the Job: its present state, its earlier state, or nothing. */
function knownOf(job: HookJob): readonly (readonly HookJob[])[] {
  return job.state === 'running' ? [[job], []] : [[job], [{ ...job, state: 'running' }], []];
}

/** Describes for people which views lag; empty if no view lags. */
export function lagOf({ plan, nodes }: Choice, holdings: Holdings): string {
  const lags = holdings.nodes.flatMap(({ length }, place) =>
    nodes[place] === length ? [] : [`node ${place + 1} at ${nodes[place]} of ${length}`],
  );
  if (plan !== holdings.plan.length) lags.unshift(`plan at ${plan} of ${holdings.plan.length}`);
  return lags.length === 0 ? '' : `, seeing ${lags.join(' and ')}`;
}

/** Returns the newest resourceVersion of each kind. The kind with the newest version comes first. */
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

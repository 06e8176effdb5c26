/**
 * Converts results of hooks into the entries of a NodeRollout, and back. Commands read the results from the
 * NodeRollout, because only the leader runs hooks.
 */
import {
  LONGEST_MESSAGE,
  MOST,
  type NodeRollout,
  type NodeRolloutStatus,
} from '../../api/refit/node-rollout.ts';
import type { HookResult } from '../../hooks/rules.ts';
import { rfc3339 } from '../../util/clock.ts';
import { printable } from '../../util/printable.ts';

export type ShownHook = NonNullable<NodeRolloutStatus['hooks']>[number];

/** Returns the runs that have not succeeded, the failed ones first, as a NodeRollout shows them; undefined if there are none. */
export function hooksShown(results: readonly HookResult[] = []): ShownHook[] | undefined {
  const shown = results.flatMap(({ hook, target, id, state, message, since }): ShownHook[] =>
    state === 'succeeded'
      ? []
      : [
          {
            hook,
            ...(target === undefined ? {} : { target }),
            id,
            state: state === 'failed' ? 'Failed' : 'Running',
            message: printable(message).slice(0, LONGEST_MESSAGE),
            // A NodeRollout may lack the time, because the field is optional.
            ...(Number.isNaN(since) ? {} : { since: rfc3339(since) }),
          },
        ],
  );
  return bounded(shown);
}

/**
 * Returns `next`, together with the failures of `before` that a NodeRollout must still show. These failures matter
 * because a new leader does not know the runs that an earlier leader observed. `settled` returns the names of the
 * targets that have ended, and the names of the runs for the whole plan.
 */
export function withEarlierFailures(
  next: NodeRolloutStatus['hooks'] = [],
  before: NodeRolloutStatus['hooks'] = [],
  settled: () => readonly string[],
): NodeRolloutStatus['hooks'] {
  const known = new Set(next.map(({ id }) => id));
  const lost = before.filter(({ id, state }) => state === 'Failed' && !known.has(id));
  // Calls `settled` only if `before` has failures that `next` lacks, because a plan may have thousands of targets.
  const ended = new Set(lost.length === 0 ? [] : settled());
  return bounded([...next, ...lost.filter(({ id, target = id }) => ended.has(target))]);
}

/**
 * Returns at most `MOST.hooks` entries; undefined if there are no entries. Failed entries come before the other
 * entries, and newer entries come before older entries of the same state.
 */
function bounded(hooks: readonly ShownHook[]): ShownHook[] | undefined {
  if (hooks.length === 0) return undefined;
  const rank = ({ state }: ShownHook): number => (state === 'Failed' ? 0 : 1);
  const newestFirst = (a: ShownHook, b: ShownHook): number =>
    (b.since ?? '').localeCompare(a.since ?? '');
  return hooks
    .toSorted((a, b) => rank(a) - rank(b) || newestFirst(a, b) || a.id.localeCompare(b.id))
    .slice(0, MOST.hooks);
}

/** Returns the results that the leader has shown for this plan; undefined if it has shown none. */
export function hookResultsIn(
  shown: NodeRollout | undefined,
  planUid: string | undefined,
): readonly HookResult[] | undefined {
  const { hooks } = shown?.status ?? {};
  if (hooks === undefined || shown?.spec.plan.uid !== planUid) return undefined;
  return hooks.map(({ hook, target, id, state, message = '', since = '' }) => ({
    hook,
    target,
    id,
    state: state === 'Failed' ? 'failed' : 'running',
    message,
    since: Date.parse(since),
  }));
}

/** Turns the silences of a plan into what a NodeRollout shows. */
import { LONGEST } from '../../api/crd.ts';
import { LONGEST_MESSAGE, MOST, type NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import type { NodeSilence } from '../../silences/keeper.ts';
import { rfc3339 } from '../../util/clock.ts';
import { defined } from '../../util/json.ts';
import { printable } from '../../util/printable.ts';

export type ShownSilence = NonNullable<NodeRolloutStatus['silences']>[number];

/**
 * Returns the silences as a NodeRollout shows them; undefined if there are no silences. Silences with a problem come
 * first. The result does not change when a silence is renewed. `before` contains the silences that the NodeRollout
 * shows already. They matter because a new leader has not looked for these silences yet.
 */
export function silencesShown(
  silences: readonly NodeSilence[] = [],
  before: readonly ShownSilence[] = [],
): ShownSilence[] | undefined {
  const known = new Map(before.map((each) => [keyOf(each), each]));
  const shown = silences.flatMap((each) => {
    const earlier = known.get(keyOf(each));
    if (each.problem === undefined) return earlier ?? [];
    return steady(shownOf(each), earlier);
  });
  if (shown.length === 0) return undefined;
  const rank = ({ problem }: ShownSilence): number => (problem === undefined ? 1 : 0);
  return shown
    .toSorted((a, b) => rank(a) - rank(b) || keyOf(a).localeCompare(keyOf(b)))
    .slice(0, MOST.silences);
}

function keyOf({ node, silence, server }: ShownSilence | NodeSilence): string {
  return [node, silence, server].join(' ');
}

function shownOf({ node, silence, server, lastsMs, made, problem }: NodeSilence): ShownSilence {
  const start = Date.parse(made?.startsAt ?? '');
  return {
    node,
    silence,
    server,
    ...defined({
      id: made && printable(made.id).slice(0, LONGEST.name),
      since: Number.isNaN(start) ? undefined : rfc3339(start),
    }),
    durationSeconds: Math.round(lastsMs / 1000),
    ...(problem ? { problem: printable(problem).slice(0, LONGEST_MESSAGE) } : {}),
  };
}

/**
 * Returns `next`, but keeps the start that the NodeRollout shows already for the same silence. Alertmanager may later
 * report a different start, because it sets the start of a new silence by its own clock.
 */
function steady(next: ShownSilence, earlier: ShownSilence | undefined): ShownSilence {
  const isSame = next.id !== undefined && next.id === earlier?.id && earlier.since !== undefined;
  return isSame ? { ...next, ...defined({ since: earlier.since }) } : next;
}

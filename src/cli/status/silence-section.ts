/** Renders whether alerts about the nodes in progress are silenced. */
import { MOST } from '../../api/refit/node-rollout.ts';
import { formatDuration } from '../../util/duration.ts';
import { defined } from '../../util/json.ts';
import { age } from '../phrases.ts';
import type { ShownPlan, SilenceJson, SilencingJson } from './json-form.ts';

/** A section of the text that `refit status` and `why` print. */
interface SilenceSection {
  readonly heading: string;
  readonly lines: readonly string[];
}

/**
 * Returns the section about the silences of a plan. It has no lines if the policy has no silences, or if the leader has
 * not published anything about silences.
 */
export function silenceSection(
  { silencing }: Pick<ShownPlan, 'silencing'>,
  now: number,
): SilenceSection {
  return { heading: 'alerts', lines: silencing === undefined ? [] : [stateLine(silencing, now)] };
}

/**
 * Returns the section about the silences for one node. `target` is the name of the target in progress on that node. If
 * the leader has published no silence for this node, returns the section about the silences of the whole plan.
 */
export function targetSilenceSection(
  { silencing }: Pick<ShownPlan, 'silencing'>,
  target: string,
  now: number,
): SilenceSection {
  const own = silencing && silencingOf(silencing, target);
  const lines = own?.silences?.map((each) => silenceLine(each, now));
  return lines ? { heading: 'alerts', lines } : silenceSection({ silencing: own }, now);
}

/**
 * Returns the silences for this target in progress, and whether they have a problem. If the leader has published no
 * silence for the target, returns what the leader has published about the whole plan.
 */
export function silencingOf(silencing: SilencingJson, target: string): SilencingJson {
  const { silences: all = [], ...ofPlan } = silencing;
  const silences = all.filter((each) => each.target === target);
  if (silences.length === 0) {
    // If the list is full, the target may be missing only because the list has a maximum length.
    const isComplete = all.length > 0 && all.length < MOST.silences;
    const message = 'the leader has not looked for a silence of this node yet';
    return ofPlan.isGood && isComplete ? { isGood: false, message } : ofPlan;
  }
  const bad = silences.find(({ problem }) => problem !== undefined);
  if (bad !== undefined) {
    const message = `silence ${bad.silence} at ${bad.server}: ${bad.problem}`;
    return { isGood: false, message, silences };
  }
  const since = silences
    .flatMap((each) => each.since ?? [])
    .toSorted()
    .at(-1);
  return { isGood: true, message: 'its alerts are silenced', ...defined({ since }), silences };
}

function stateLine({ isGood, message, since }: SilencingJson, now: number): string {
  const past = since === undefined ? '' : `, for ${age(since, now)}`;
  return isGood ? `${message}${past}` : `not silenced${past}: ${message}`;
}

function silenceLine(
  { silence, server, id, since, durationSeconds, problem }: SilenceJson,
  now: number,
): string {
  const name = id === undefined ? `${silence} at ${server}` : `${silence} at ${server} (id ${id})`;
  if (problem !== undefined)
    return id === undefined
      ? `not silenced by ${name}: ${problem}`
      : `silence ${name} could not be renewed, and ends soon: ${problem}`;
  const past = since === undefined ? '' : ` for ${age(since, now)}`;
  const end = `${formatDuration(durationSeconds * 1000)} after its last renewal`;
  return `silenced${past} by ${name}, which ends ${end}`;
}

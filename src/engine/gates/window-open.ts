/**
 * Gate: a target starts only in a maintenance window and outside of blackouts, and only if its upgrade can finish
 * before the window closes. A person can open the window once (`refit start`).
 */
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import {
  nextStart,
  openAt,
  type Timetable,
  timeWithZone,
  zoneOf,
} from '../../util/maintenance-windows.ts';
import { onceForEach, onceForEachWith } from '../../util/memo.ts';
import { type Controls, type OpenWindow, openingAt } from '../model/controls.ts';
import type { PlainCode } from '../model/reasons.ts';
import type { PlanFacts } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { type GateInput, PASS, type Verdict, type Waiting, wait } from './types.ts';

interface WindowInput extends Pick<GateInput, 'target' | 'policy' | 'now' | 'expectedMs' | 'pace'> {
  readonly plan: Pick<PlanFacts, 'controls'>;
}

export const windowOpen = {
  name: 'window-open',
  ofRollout: true,
  evaluate({ target, policy, now, plan, pace, expectedMs = 0 }: WindowInput): Verdict {
    if (openingFor(policy, plan.controls, now) !== undefined) return PASS;
    const opening = openAt(policy, now);
    if (!opening.open) return closed(policy, now, opening.opensAt);
    // The plan's own window limits only when targets start. Targets may end after this window has closed.
    const own = openAt(ownTimetable(policy), now);
    if (!own.open)
      return waiting(
        'WindowClosed',
        outsideOf('the plan', own.opensAt, policy.planWindows ?? []),
        `the window opens, at ${timeIn(policy.planWindows ?? [], own.opensAt)}`,
        now,
        own.opensAt,
      );
    if (now + expectedMs <= opening.until) return PASS;
    const start = nextStart(policy, now, expectedMs);
    const then =
      start === undefined
        ? 'no window is that long'
        : `it may start at ${timeIn(policy.windows, start)}`;
    const message = `${target.name} takes about ${formatDuration(expectedMs)}, and the window closes at ${timeIn(policy.windows, opening.until)}: ${then}`;
    const longer = `a window of UpgradePolicy ${policy.name} is made longer`;
    // Until it is known how long the nodes of this plan take, the expected duration is the duration of the last upgrade
    // of this target. So only this target waits, not the others.
    const ofWhom = pace.kind === 'measured' ? {} : { isOfThisTarget: true as const };
    const verdict =
      start === undefined
        ? wait('WindowTooShort', message, longer, { recheckMs: opening.until - now })
        : waiting(
            'WindowTooShort',
            message,
            `a window opens that is long enough, at ${timeIn(policy.windows, start)}`,
            now,
            start,
          );
    return { ...verdict, ...ofWhom };
  },
};

/**
 * Returns the opening by a person that lets targets start at `now` even if every window is closed. Returns undefined if
 * there is no opening, if the opening is over, or during a blackout in which the opening does not count.
 */
export function openingFor(
  { blackouts }: Pick<RolloutPolicy, 'blackouts'>,
  controls: Controls,
  now: number,
): OpenWindow | undefined {
  const opening = openingAt(controls, now);
  const isDark = blackouts.some(({ from, to }) => from <= now && now < to);
  return isDark && opening?.blackouts !== true ? undefined : opening;
}

/** Returns true if the timetable alone lets targets start at `now`. */
export function isTimetableOpen(policy: RolloutPolicy, now: number): boolean {
  return openUntil(policy, now) !== undefined;
}

/** Returns the time in milliseconds until which the timetable alone lets targets start; undefined if it does not at `now`. */
export function openUntil(policy: RolloutPolicy, now: number): number | undefined {
  const all = openAt(policy, now);
  const own = openAt(ownTimetable(policy), now);
  return all.open && own.open ? Math.min(all.until, own.until) : undefined;
}

/** Returns the end of an opening, in UTC and in the time zone of the windows. */
export function endOfOpening(
  { until }: Pick<OpenWindow, 'until'>,
  { windows, planWindows = [] }: Pick<RolloutPolicy, 'windows' | 'planWindows'>,
): string {
  return timeWithZone(Date.parse(until), zoneOf([...windows, ...planWindows]));
}

/** Returns a clause that says who opened the window, and until when it is open. */
export function describeOpening(
  opening: OpenWindow,
  policy: Pick<RolloutPolicy, 'windows' | 'planWindows'>,
): string {
  const { by, reason } = opening;
  const who = by === undefined ? 'somebody' : by;
  const why = reason === undefined ? '' : ` (${reason})`;
  return `${who} opened the maintenance window until ${endOfOpening(opening, policy)}${why}`;
}

function closed(
  { name, blackouts, windows }: RolloutPolicy,
  now: number,
  opensAt: number,
): Verdict {
  if (!blackouts.some(({ from, to }) => from <= now && now < to))
    return waiting(
      'WindowClosed',
      outsideOf(`UpgradePolicy ${name}`, opensAt, windows),
      `the window opens, at ${timeIn(windows, opensAt)}`,
      now,
      opensAt,
    );
  const at = timeIn(windows, opensAt);
  const message = `UpgradePolicy ${name} has a blackout now: nothing starts before ${at}`;
  // A window of the policy may open only some time after the blackout.
  const isEnd = blackouts.some(({ to }) => to === opensAt);
  const ends = isEnd
    ? `the blackout is over, at ${at}`
    : `a window opens after the blackout, at ${at}`;
  return waiting('Blackout', message, ends, now, opensAt);
}

/**
 * Returns the time in UTC and in the time zone of the windows. The text is cached, because thousands of targets may
 * wait for the same time.
 */
function timeIn(windows: Timetable['windows'], time: number): string {
  return knownTimeIn(windows, String(time));
}

const knownTimeIn = onceForEachWith((windows: Timetable['windows'], time) =>
  timeWithZone(Number(time), zoneOf(windows)),
);

/** The timetable of the plan's own windows, which limit only when targets start. */
const ownTimetable = onceForEach(
  ({ planWindows = [] }: Pick<RolloutPolicy, 'planWindows'>): Timetable => ({
    windows: planWindows,
    blackouts: [],
  }),
);

function outsideOf(whose: string, opensAt: number, windows: Timetable['windows']): string {
  return `outside of the maintenance windows of ${whose}: nothing starts before ${timeIn(windows, opensAt)}`;
}

function waiting(
  code: PlainCode,
  message: string,
  ends: string,
  now: number,
  until: number,
): Waiting {
  return wait(code, message, ends, { recheckMs: until - now, until: rfc3339(until) });
}

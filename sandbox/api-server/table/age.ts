/** Writes durations and times as `kubectl get` shows them, such as `5m` or `2d3h`. */

const SECOND = 1000;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** Up to `below` seconds, a duration is written in `unit` and, if `and` names one, in the next smaller unit. */
const RULES: readonly { below: number; unit: [number, string]; and?: [number, string] }[] = [
  { below: 2 * MINUTE, unit: [1, 's'] },
  { below: 10 * MINUTE, unit: [MINUTE, 'm'], and: [1, 's'] },
  { below: 3 * HOUR, unit: [MINUTE, 'm'] },
  { below: 8 * HOUR, unit: [HOUR, 'h'], and: [MINUTE, 'm'] },
  { below: 2 * DAY, unit: [HOUR, 'h'] },
  { below: 8 * DAY, unit: [DAY, 'd'], and: [HOUR, 'h'] },
  { below: 2 * YEAR, unit: [DAY, 'd'] },
  { below: 8 * YEAR, unit: [YEAR, 'y'], and: [DAY, 'd'] },
  { below: Number.POSITIVE_INFINITY, unit: [YEAR, 'y'] },
];

/**
 * The shorter a duration is, the more exact is its text. A time that is at most one second in the future counts as now.
 */
export function shortDuration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / SECOND);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  const rule = RULES.find(({ below }) => seconds < below);
  if (!rule) return '';
  const [size, letter] = rule.unit;
  const first = `${Math.floor(seconds / size)}${letter}`;
  if (!rule.and) return first;
  const [smallSize, smallLetter] = rule.and;
  const rest = Math.floor((seconds % size) / smallSize);
  return rest === 0 ? first : `${first}${rest}${smallLetter}`;
}

/** Formats the time from `timestamp`, which has the form of `metav1.Time`, to `now`. */
export function age(timestamp: unknown, now: number): string {
  if (typeof timestamp !== 'string' || timestamp === '') return '<unknown>';
  const time = Date.parse(timestamp);
  return Number.isNaN(time) ? '<invalid>' : shortDuration(now - time);
}

/** Reads the durations of an UpgradePolicy. */
import { parseDuration, parseDurationOrZero } from '../../util/duration.ts';

/** Records an invalid field: its path in `spec`, what its value must be, and the value that was found. */
export type Complain = (field: string, wanted: string, found: unknown) => void;

/** The longest duration in a policy, in milliseconds. It is limited because times far in the future are not valid dates. */
const LONGEST_MS = 365 * 24 * 60 * 60 * 1000;
const WANTED_TIME = 'a time above zero and below a year, such as 90s or 1h30m';
const WANTED_TIME_OR_ZERO = `0s, or ${WANTED_TIME}`;

/** Returns the duration in milliseconds. Returns undefined if it is absent or invalid, and calls `complain` in the latter case. */
export function readTime(
  field: string,
  text: string | undefined,
  complain: Complain,
  wanted = WANTED_TIME,
  parse = parseDuration,
): number | undefined {
  if (text === undefined) return undefined;
  const ms = parse(text);
  if (ms !== undefined && ms <= LONGEST_MS) return ms;
  complain(field, wanted, text);
  return undefined;
}

/** Works like `readTime`, for a field that may also be zero. */
export function readTimeOrZero(field: string, text: string | undefined, complain: Complain) {
  return readTime(field, text, complain, WANTED_TIME_OR_ZERO, parseDurationOrZero);
}

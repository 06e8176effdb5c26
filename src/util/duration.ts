/** Parses and writes durations in the forms of people and of Go programs. */
import { ownMember } from './own-member.ts';

/**
 * Returns the milliseconds of a text such as `250ms`, `90s`, `5m` or `1h30m`; undefined if the text
 * has another form, or is zero.
 */
export function parseDuration(text: string): number | undefined {
  const nanoseconds = FORM.test(text) ? parseGoDuration(text) : undefined;
  return nanoseconds ? nanoseconds / 1e6 : undefined;
}

/** Works like `parseDuration`, and also returns 0 for `0` and for zero with a unit, such as `0s`. */
export function parseDurationOrZero(text: string): number | undefined {
  return ZERO.test(text) ? 0 : parseDuration(text);
}

const ZERO = /^(?:0|(?:0+(?:ms|s|m|h))+)$/;
const FORM = /^(?:\d+(?:ms|s|m|h))+$/;

/** The longest duration that `parseDuration` reads, in whole hours. Go programs cannot read a longer one. */
export const LONGEST_DURATION = '2562047h';

/** Returns true if the text has the form of a duration, but is longer than `LONGEST_DURATION`. */
export function isDurationTooLong(text: string): boolean {
  return FORM.test(text) && parseGoDuration(text) === undefined;
}

/**
 * Returns a duration for people: `850 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`. It has at most two
 * units.
 */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return join(minutes, 'min', seconds % 60, 's');
  return join(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
}

function join(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

const GO_UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  // Go accepts both the micro sign and the Greek letter mu, which look alike.
  '\u03bcs': 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

/** Go counts the nanoseconds with 64 bits, so its longest duration is 292 years. */
const OVERFLOW = 2 ** 63;

/** Returns the nanoseconds of a Go duration; undefined if Go cannot parse the text. */
export function parseGoDuration(text: string): number | undefined {
  const nanoseconds = sumOf(text);
  return nanoseconds === undefined || Math.abs(nanoseconds) >= OVERFLOW ? undefined : nanoseconds;
}

/** Returns a clause that says why Go cannot parse the text as a duration. */
export function faultOfGoDuration(text: string): string {
  return sumOf(text) === undefined
    ? 'is not a duration'
    : `is longer than ${LONGEST_DURATION}, the longest duration`;
}

/** Returns the nanoseconds of a text in the form of a Go duration, however many they are; undefined for any other text. */
function sumOf(text: string): number | undefined {
  const [, sign = '', rest = ''] = /^([+-]?)(.*)$/.exec(text) ?? [];
  if (rest === '0') return 0;
  const parts = [...rest.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|\u03bcs|ms|s|m|h)/gy)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== rest) return undefined;
  const sum = parts.reduce(
    (total, [, digits, unit = '']) => total + Number(digits) * (ownMember(GO_UNITS, unit) ?? 0),
    0,
  );
  return sign === '-' ? -sum : sum;
}

/** Returns nanoseconds in the form of Go: `0s`, `300ms`, `1.5s`, `1m30s`, `1h0m0s`. */
export function formatGoDuration(nanoseconds: number): string {
  if (nanoseconds < 0) return `-${formatGoDuration(-nanoseconds)}`;
  if (nanoseconds === 0) return '0s';
  const small = (['ns', 'µs', 'ms'] as const).find(
    (unit) => nanoseconds < (GO_UNITS[unit] ?? 0) * 1000,
  );
  if (small !== undefined) return `${nanoseconds / (GO_UNITS[small] ?? 1)}${small}`;
  const minutes = Math.floor(nanoseconds / 60e9);
  const seconds = `${Number(((nanoseconds - minutes * 60e9) / 1e9).toFixed(9))}s`;
  if (minutes === 0) return seconds;
  return minutes < 60
    ? `${minutes}m${seconds}`
    : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

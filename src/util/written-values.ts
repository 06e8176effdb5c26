/**
 * Reads members of JSON that people write into annotations. Anybody may write them, so a value that does not have the
 * expected form counts as absent.
 */
import { printable } from './printable.ts';

/** The most characters of a written text that messages repeat. */
const LONGEST = 200;

/** Returns the text, printable and of limited length; undefined if the value is no text or only spaces. */
export function textIn(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.trim() === '') return undefined;
  return printable(value).trim().slice(0, LONGEST);
}

/** Returns the value if it is a time in RFC 3339. The pattern is needed because `Date.parse` also accepts words and numbers. */
export function momentIn(value: unknown): string | undefined {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT/.test(value)) return undefined;
  return Number.isNaN(Date.parse(value)) ? undefined : value;
}

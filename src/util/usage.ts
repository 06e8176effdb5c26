/** Owns the words for what Node's own parser of command lines complains about. */
import { messageOf, RefitError } from './errors.ts';

/** Where its first sentence ends: the rest is about its own syntax. What people typed stands in quotes, full stops included. */
const FIRST_END = /(?<=')\. (?=[A-Z])|\.?\n/;

export function usageError(error: unknown): RefitError {
  return new RefitError('REFIT_USAGE', messageOf(error).split(FIRST_END)[0] ?? '', { cause: error });
}

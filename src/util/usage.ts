/** Turns errors of Node's command line parser into REFIT_USAGE. */
import { messageOf, RefitError } from './errors.ts';

/** The end of the first sentence; the rest explains Node's syntax. Quotes hold what was typed, full stops included. */
const FIRST_END = /(?<=')\. (?=[A-Z])|\.?\n/;

export function usageError(error: unknown): RefitError {
  return new RefitError('REFIT_USAGE', messageOf(error).split(FIRST_END)[0] ?? '', { cause: error });
}

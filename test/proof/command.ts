/** What the commands of the proofs have in common: their arguments, and their last lines. */
import { systemClock } from '../../src/util/clock.ts';
import { EXIT, RefitError, usageError } from '../../src/util/errors.ts';
import type { Outcome } from './checks.ts';

/** Returns the parsed arguments. Throws REFIT_USAGE if they are wrong, or if an option has an empty value. */
export function parsed<T extends { readonly values: Readonly<Record<string, unknown>> }>(
  parse: () => T,
): T {
  let found: T;
  try {
    found = parse();
  } catch (error) {
    throw usageError(error);
  }
  const [empty] = Object.entries(found.values).find(([, value]) => value === '') ?? [];
  if (empty !== undefined)
    throw new RefitError('REFIT_USAGE', `--${empty} wants a value, found an empty text`);
  return found;
}

/** Prints the failed checks and a last line. Returns the exit code. `started` is in monotonic milliseconds. */
export function conclude({ passed, failed }: Outcome, started: number): number {
  const minutes = ((systemClock.monotonic() - started) / 60_000).toFixed(1);
  for (const name of failed) process.stdout.write(`FAILED: ${name}\n`);
  const also = failed.length > 0 ? `, ${failed.length} failed` : '';
  process.stdout.write(`${passed} checks passed${also} in ${minutes} minutes\n`);
  return failed.length > 0 ? EXIT.failed : 0;
}

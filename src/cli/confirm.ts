/** Asks the person at the terminal before something is written. */
import { createInterface } from 'node:readline/promises';
import { RefitError } from '../util/errors.ts';
import { printable } from '../util/printable.ts';

export interface Confirmation {
  /** The message of the error if there is no terminal. */
  readonly unasked: string;
  readonly abort?: AbortSignal | undefined;
  /** The stream to which the question is written; by default, standard output. */
  readonly screen?: NodeJS.WritableStream;
}

/** Resolves with true if the person answers `yes`. Rejects with REFIT_USAGE if nobody can be asked. */
export async function isConfirmed(
  question: string,
  { unasked, abort, screen = process.stdout }: Confirmation,
): Promise<boolean> {
  if (!process.stdin.isTTY) throw new RefitError('REFIT_USAGE', unasked);
  using terminal = createInterface(process.stdin, screen);
  const answer = await terminal.question(
    printable(`${question} Type yes: `),
    abort === undefined ? {} : { signal: abort },
  );
  return answer.trim() === 'yes';
}

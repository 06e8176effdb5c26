/** Runs a command: ends it on signals, prints what went wrong, and sets the exit code. */
import { EXIT, RefitError } from '../src/util/errors.ts';

/** `main` resolves with the exit code after all that it started has ended, also when `abort` aborts. */
export async function runMain(
  main: (args: string[], abort: AbortSignal) => Promise<number>,
): Promise<void> {
  const interruption = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => interruption.abort(new Error(name)));
  }
  const { signal: abort } = interruption;
  try {
    process.exitCode = await main(process.argv.slice(2), abort);
  } catch (error) {
    process.exitCode = abort.aborted ? EXIT.interrupted : told(error);
  }
}

function told(error: unknown): number {
  if (!(error instanceof RefitError)) throw error;
  process.stderr.write(`${error.text}\n`);
  return error.exitCode;
}

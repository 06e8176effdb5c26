#!/usr/bin/env node
/** Runs the `refit` executable: handles SIGINT, SIGTERM and SIGHUP, prints errors, and sets the exit code. */
import { fstatSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { CommandSpec } from '../cli/program.ts';
import { EXIT, RefitError } from '../util/errors.ts';

const interrupted = new AbortController();
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
for (const name of SIGNALS) process.once(name, () => interrupted.abort(new Error(name)));
// Node.js reports no error if only a part of the output fits into a file.
const { fd } = process.stdout;
const writeAll = (chunk: Buffer, _encoding: string, done: (error?: unknown) => void): void => {
  try {
    writeFileSync(fd, chunk);
    done();
  } catch (error) {
    done(error);
  }
};
if (fstatSync(fd).isFile()) Reflect.set(process.stdout, '_write', writeAll);
// If the reader closes the pipe, as `head` does, a watch ends, and a controller stops in the usual order. Other errors
// while the log is written are ignored.
const isClosed = ({ code }: NodeJS.ErrnoException): boolean => code === 'EPIPE';
process.stderr.on('error', (error) => void (isClosed(error) && interrupted.abort(error)));
process.stdout.on('error', (error) => {
  interrupted.abort(error);
  if (isClosed(error)) return;
  const problem = `cannot write the output: ${error.message}`;
  const { line } = new RefitError('REFIT_FILE', problem, {
    hint: 'free disk space, and run the same command again',
  });
  process.stderr.write(`${line}\n`);
  process.on('exit', () => {
    process.exitCode = EXIT.failed;
  });
});

/** Runs the command. The agent and the replacement for system-upgrade-controller load only what they need: the agent stays in memory for months, and the replacement starts in each of its pods. */
async function run([command, ...rest]: readonly string[]): Promise<number | void> {
  const { signal: abort } = interrupted;
  if (command === 'agent') return await (await import('./agent-command.ts')).runAgent(rest, abort);
  // The DaemonSet of the chart runs this command. People do not, so the help does not list it.
  if (command === 'agent-in-pod')
    return await (await import('../install/host/agent-in-pod.ts')).startAgentOnHost(rest);
  // Shells and kubectl run this command when somebody presses Tab.
  if (command === '__complete') return await completeLine(rest, abort);
  if (command === STAND_IN && rest.length === 0) {
    const { loadStandIn } = await import('../dialects/modules.ts');
    return await (await loadStandIn())(process.env, abort);
  }
  // This command computes without a pause, so a signal handler would run only after it. Without a handler, the signal
  // ends the process at once.
  if (command === 'validate') for (const name of SIGNALS) process.removeAllListeners(name);
  if (command === 'help' && rest[0] === 'agent') return await run(['agent', '--help']);
  const [{ runProgram }, commands, { plainOutput }] = await Promise.all([
    import('../cli/program.ts'),
    loadCommands(),
    import('../cli/output.ts'),
  ]);
  const { write } = plainOutput;
  return await runProgram(command === undefined ? ['--help'] : [command, ...rest], commands, {
    abort,
    write,
  });
}

/** Loads the commands, with all dialects. */
async function loadCommands(): Promise<readonly CommandSpec[]> {
  const [{ commandsOf }, { MODULES }] = await Promise.all([
    import('./commands.ts'),
    import('../dialects/modules.ts'),
  ]);
  return await commandsOf(MODULES);
}

async function completeLine(line: readonly string[], abort: AbortSignal): Promise<void> {
  const [{ complete }, commands] = await Promise.all([
    import('../cli/complete.ts'),
    loadCommands(),
  ]);
  // The text is written without `plainOutput`, which would replace the tabs between words and meanings.
  process.stdout.write(await complete(line, commands, abort));
}

/**
 * The name of the program in the image of Rancher's controller. The image runs it without arguments, so an executable
 * with this name takes no arguments.
 */
const STAND_IN = 'system-upgrade-controller';

run(basename(process.argv0) === STAND_IN ? [STAND_IN] : process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code ?? EXIT.ok;
  },
  async (thrown: unknown) => {
    const { describeProblem } = await import('../kube/status-error.ts');
    const { text, exitCode } = describeProblem(thrown);
    if (!interrupted.signal.aborted) process.stderr.write(`${text}\n`);
    // Work that did not stop in time must not continue after the error has been printed.
    process.exit(interrupted.signal.aborted ? EXIT.interrupted : exitCode);
  },
);

/**
 * Runs a program and writes its output to a file. If a second program is given, the output passes through it. If one
 * program fails, all programs are killed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { sendSignal } from '../service/processes.ts';

export interface PipedCommand {
  readonly program: string;
  readonly args: readonly string[];
}

export interface PipedCommands {
  /** Copies the output of the first program to `reader`, before a second program changes that output. */
  readonly copyTo: (reader: Writable) => void;
  /** The output of the last program. */
  readonly output: Readable;
  /** Resolves once all programs have exited with 0. Rejects as soon as one of the programs fails or is killed. */
  readonly ended: Promise<void>;
  /** Kills all programs and their children. */
  readonly kill: (why: Error) => void;
}

/** If a program writes more error output than this number of characters, only the last characters are kept. */
const MOST_WORDS = 4_096;

/** Starts the programs with exactly this environment. Each program runs in its own process group. */
export function pipeCommands(
  first: PipedCommand,
  second: PipedCommand | undefined,
  env: NodeJS.ProcessEnv,
): PipedCommands {
  const options = { env, cwd: '/', detached: true } as const;
  const source = spawn(first.program, first.args, {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const filter =
    second && spawn(second.program, second.args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  const children = filter === undefined ? [source] : [source, filter];
  let killed: Error | undefined;
  const output = new PassThrough();
  // This empty listener prevents a crash. A reader of the output still gets the error.
  output.on('error', () => undefined);
  const kill: PipedCommands['kill'] = (why) => {
    killed ??= why;
    for (const { pid } of children) if (pid !== undefined) sendSignal(-pid, 'SIGKILL');
    output.destroy(why);
  };
  const succeeded = async (child: ChildProcess, { program, args }: PipedCommand): Promise<void> => {
    const failure = await failureOf(child);
    if (failure === undefined) return;
    const error = killed ?? new Error(`${[program, args[0]].join(' ')} ${failure}`);
    kill(error);
    throw error;
  };
  // A program that has ended cannot receive more input, so this error is ignored. The exit code of the program says why
  // it ended.
  filter?.stdin.on('error', () => undefined);
  if (filter === undefined) source.stdout.pipe(output);
  else {
    source.stdout.pipe(filter.stdin);
    filter.stdout.pipe(output);
  }
  const ended = Promise.all([
    succeeded(source, first),
    ...(filter && second ? [succeeded(filter, second)] : []),
  ]).then(() => undefined);
  ended.catch(() => undefined);
  return {
    copyTo: (reader) => {
      reader.on('error', () => source.stdout.unpipe(reader));
      source.stdout.pipe(reader);
    },
    output,
    ended,
    kill,
  };
}

/** Resolves with a text that says how the program failed; undefined if the program exited with 0. */
async function failureOf(child: ChildProcess): Promise<string | undefined> {
  let words = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-MOST_WORDS);
  });
  return await new Promise((resolve) => {
    child.once('error', ({ message }) => resolve(`cannot run: ${message}`));
    child.once('close', (code, signal) => {
      const end = code === null ? `was ended by ${signal}` : `ended with code ${code}`;
      resolve(code === 0 ? undefined : `${end}: ${words.trim().split('\n').at(-1) ?? ''}`);
    });
  });
}

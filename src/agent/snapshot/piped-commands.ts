/** Runs a program and writes its output to a file, through another program if one is given. If one program fails, all of them are ended. */
import { type ChildProcess, spawn } from 'node:child_process';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { sendSignal } from '../service/processes.ts';

export interface PipedCommand {
  readonly program: string;
  readonly args: readonly string[];
}

export interface PipedCommands {
  /** Makes `reader` get a copy of what the first program prints, before another program changes it. */
  readonly copyTo: (reader: Writable) => void;
  /** What the last program prints. */
  readonly output: Readable;
  /** Resolves once all programs have exited with 0. Rejects as soon as one of them fails or is ended. */
  readonly ended: Promise<void>;
  /** Kills all programs and their children. */
  readonly kill: (why: Error) => void;
}

/** The most characters that are kept of the last error output of a program. */
const MOST_WORDS = 4_096;

/** Starts the programs with exactly this environment. Each one runs in a process group of its own. */
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
  // The reader of the output gets the error, too, once it reads.
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
  // A program that has ended cannot take more input. Its exit code says why it ended.
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

/** Resolves with how the program failed; undefined if it exited with 0. */
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

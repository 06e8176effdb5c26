/** Runs a staged binary once, without rights, to see whether it starts here and has the right version. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { formatDuration } from '../../util/duration.ts';
import { feed } from '../download/hash-file.ts';
import { sendSignal } from '../service/processes.ts';
import { confinementFor } from './confine.ts';
import { foreignProcessor } from './processor.ts';

export interface Trial {
  readonly binary: string;
  /** Lower-case hexadecimal; undefined: the file is not compared. */
  readonly sha256: string | undefined;
  /** Version it must print; undefined: any version. */
  readonly version?: string;
  readonly timeoutMs: number;
  /** Receives what this host has no program for: the trial runs without that protection. */
  readonly cannot?: (problem: string) => void;
}

const MAX_OUTPUT_BYTES = 64 * 1024;
/** From here on nobody gives out users. One for each agent, so that all of its processes can be killed, and no others. */
const FIRST_FREE_USER = 0x7000_0000;
const NOBODY = 65_534;
// When memory runs short all the same, the kernel ends it first. File descriptor 3 is the binary.
/** No core dump or file, ten seconds of computing, 1 GiB for each process, 1,000 processes and threads (-u in bash). */
const SCRIPT =
  'echo 1000 2>/dev/null >/proc/self/oom_score_adj; ulimit -c 0; ulimit -f 0; ulimit -t 10; ulimit -d 1048576; ulimit -p 1000 2>/dev/null || ulimit -u 1000; exec /proc/self/fd/3 version';
/** What keyctl says before the program that it starts. */
const OF_KEYCTL = /^Joined session keyring: .*\n/;
const CLOSE_MS = 1_000;
const KILL_ROUNDS = 5;

/** Runs `<binary> version`: rejects unless it ends with 0 in time and prints the version as a separate word. */
export async function runTrial({
  binary,
  sha256,
  version,
  timeoutMs,
  cannot,
}: Trial): Promise<void> {
  // What was opened is hashed and executed.
  await using file = await open(binary, constants.O_RDONLY | constants.O_NOFOLLOW);
  const hash = createHash('sha256');
  if (sha256 !== undefined) await feed(file, hash);
  const found = sha256 && hash.digest('hex');
  if (found !== sha256) throw failed(`its sha256 became ${found}, wanted ${sha256}`);
  const { failure, stdout } = await execute(file, timeoutMs, cannot);
  if (failure !== undefined) {
    const foreign = await foreignProcessor(file);
    throw failed(foreign === undefined ? failure : `it ${foreign}`);
  }
  if (version !== undefined && !stdout.split(/\s+/).includes(version))
    throw failed(`it reports version "${firstLine(stdout).slice(0, 80)}" instead of ${version}`);
}

/** In a session of its own, with an empty environment and what `confinementFor` takes away. Root gives it a user without rights, and ends all it started. */
async function execute({ fd }: FileHandle, timeoutMs: number, cannot: Trial['cannot']) {
  const user = process.getuid?.() === 0 ? await ownUser() : undefined;
  const { prefix, changesUser, missing } = await confinementFor(user);
  if (missing.length > 0)
    cannot?.(`the trial run is confined without ${missing.join(', ')}, which do not work here`);
  const ids = user === undefined || changesUser ? {} : { uid: user, gid: user };
  const [program, ...args] = [...prefix, '/bin/sh', '-c', SCRIPT];
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe', fd],
    cwd: '/',
    env: {},
    detached: true,
    ...ids,
  });
  const printed = { stdout: '', stderr: '' };
  let failure: string | undefined;
  const end = (why: string): void => {
    failure ??= why;
    killGroup(child.pid);
  };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text;
      if (printed[name].length > MAX_OUTPUT_BYTES)
        end(`it printed more than ${MAX_OUTPUT_BYTES} bytes`);
    });
  const patience = setTimeout(
    () => end(`it did not end within ${formatDuration(timeoutMs)}`),
    timeoutMs,
  );
  const closed = new Promise((resolve) => child.once('close', resolve));
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', ({ message }) => {
      end(message);
      resolve(null);
    });
    child.once('exit', resolve);
  });
  clearTimeout(patience);
  killGroup(child.pid);
  // Other programs may run as nobody.
  if (user !== undefined && user !== NOBODY) await killAllOf(user);
  // A process of the agent's own user that left the group may hold the pipes open.
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, CLOSE_MS))]);
  if (code !== 0)
    failure ??= `it ended with ${code === null ? 'a signal' : `code ${code}`} ${firstLine(printed.stderr.replace(OF_KEYCTL, ''))}`;
  return { stdout: printed.stdout, failure: failure?.trim() };
}

/** In a user namespace only some users exist. */
async function ownUser(): Promise<number> {
  const user = FIRST_FREE_USER + process.pid;
  const ranges = (await readFile('/proc/self/uid_map', 'utf8')).trim().split('\n');
  const isMapped = ranges.some((line) => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return user >= first && user < first + count;
  });
  return isMapped ? user : NOBODY;
}

function killGroup(leader: number | undefined): void {
  if (leader !== undefined) sendSignal(-leader, 'SIGKILL');
}

/** All at once, by the user itself: a process that forks and ends all the time is in no list long enough. */
async function killAllOf(user: number): Promise<void> {
  // Such a process may stop or kill its killer.
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const as = { uid: user, gid: user, timeout: CLOSE_MS, killSignal: 'SIGKILL' } as const;
    const killer = spawn('/bin/sh', ['-c', 'kill -9 -1'], {
      stdio: 'ignore',
      cwd: '/',
      env: {},
      ...as,
    });
    const code = await new Promise((resolve) =>
      killer.once('error', resolve).once('exit', resolve),
    );
    if (code !== null) return;
  }
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0]?.slice(0, 160) ?? '';
}

function failed(reason: string): Error {
  return new Error(`trial run of the new binary: ${reason}`);
}

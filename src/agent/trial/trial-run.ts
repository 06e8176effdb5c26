/** Runs a staged binary once, without privileges, to see whether it starts on this host and has the right version. */
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
  /** The sha256 in lower-case hexadecimal. If it is undefined, the file is not compared. */
  readonly sha256: string | undefined;
  /** The version that the binary must print. If it is undefined, every version is accepted. */
  readonly version?: string;
  /** Where the sha256 comes from. If the binary prints another version, the reason names the wrong hash with it. */
  readonly origin?: HashOrigin;
  readonly timeoutMs: number;
  /**
   * The trial calls this if the programs of this host cannot give a protection. `problem` is a sentence that names the
   * missing programs. The trial then runs without that protection.
   */
  readonly cannot?: (problem: string) => void;
}

/** Says that the plan gives the sha256 of the binary. */
export interface HashOrigin {
  /** The version of the file with this sha256 that the host keeps for a roll-back; absent if the host keeps another file or none. */
  readonly keptVersion?: string;
}

const MAX_OUTPUT_BYTES = 64 * 1024;
/**
 * The first of the user ids that no tool assigns. Each agent uses a different user id, so that it can kill all
 * processes of its trial and no other process.
 */
const FIRST_FREE_USER = 0x7000_0000;
const NOBODY = 65_534;
/**
 * Limits the trial. It may write no core dump and no file. It has ten seconds of CPU time, 1 GiB for each process, and
 * 1,000 processes and threads (`-u` in bash). If the host runs out of memory, the kernel kills the trial first. File
 * descriptor 3 is the binary.
 */
const SCRIPT =
  'echo 1000 2>/dev/null >/proc/self/oom_score_adj; ulimit -c 0; ulimit -f 0; ulimit -t 10; ulimit -d 1048576; ulimit -p 1000 2>/dev/null || ulimit -u 1000; exec /proc/self/fd/3 version';
/** keyctl prints this line before the output of the program that it starts. */
const OF_KEYCTL = /^Joined session keyring: .*\n/;
const CLOSE_MS = 1_000;
const KILL_ROUNDS = 5;

/** Runs `<binary> version`. Rejects unless it exits with 0 in time and prints the version as a separate word. */
export async function runTrial({
  binary,
  sha256,
  version,
  origin,
  timeoutMs,
  cannot,
}: Trial): Promise<void> {
  // The file is opened once, so the bytes that are hashed are the bytes that run.
  // Guard trial-link. The staged file is no link to another program.
  await using file = await open(binary, constants.O_RDONLY | constants.O_NOFOLLOW);
  const hash = createHash('sha256');
  if (sha256 !== undefined) await feed(file, hash);
  const found = sha256 && hash.digest('hex');
  // Guard trial-hash. Only the verified bytes run.
  if (found !== sha256) throw failed(`its sha256 is now ${found}; must be ${sha256}`);
  const { failure, stdout } = await execute(file, timeoutMs, cannot);
  if (failure !== undefined) {
    const foreign = await foreignProcessor(file);
    throw failed(foreign === undefined ? failure : `it ${foreign}`);
  }
  if (version === undefined || stdout.split(/\s+/).includes(version)) return;
  const reported = firstLine(stdout).slice(0, 80);
  throw failed(
    `it reports version "${reported}" instead of ${version}${wrongHash(origin, reported)}`,
  );
}

/**
 * Returns the cause of a wrong version. The bytes have the sha256 that the plan gives, so this sha256 belongs to the
 * version that the binary reports.
 */
function wrongHash(origin: HashOrigin | undefined, reported: string): string {
  if (origin === undefined) return '';
  const { keptVersion } = origin;
  return keptVersion === undefined
    ? `. The sha256 in the plan is that of ${reported || 'another file'}; correct the sha256 or the version`
    : `. The sha256 in the plan is that of ${keptVersion}, which this host keeps for a roll-back, so nothing was downloaded; correct the sha256`;
}

/**
 * Runs the file in its own session, with an empty environment and with the limits of `confinementFor`. If the agent is
 * root, the program runs as an unprivileged user, and the agent kills all processes of that user at the end.
 */
async function execute({ fd }: FileHandle, timeoutMs: number, cannot: Trial['cannot']) {
  // Guard trial-user. The new binary does not run as root.
  const user = process.getuid?.() === 0 ? await ownUser() : undefined;
  const { prefix, changesUser, missing } = await confinementFor(user);
  if (missing.length > 0)
    cannot?.(
      `the trial run is less confined, because these do not work on this host: ${missing.join(', ')}`,
    );
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
  // The processes of the user `nobody` are not killed, because other programs may run as that user.
  // Guard trial-left. No process of the trial run stays.
  if (user !== undefined && user !== NOBODY) await killAllOf(user);
  // A process of the agent's own user that left the process group may keep the pipes open.
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, CLOSE_MS))]);
  if (code !== 0)
    failure ??= `it ended with ${code === null ? 'a signal' : `code ${code}`} ${firstLine(printed.stderr.replace(OF_KEYCTL, ''))}`;
  return { stdout: printed.stdout, failure: failure?.trim() };
}

/**
 * Returns the user id that this agent uses for the trial. Returns the id of `nobody` if the user namespace of the agent
 * does not contain that user id.
 */
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

/**
 * Kills all processes of a user at once. The kill runs as that user. If the agent instead killed the processes one by
 * one from a list, a process that forks and exits all the time would escape.
 */
async function killAllOf(user: number): Promise<void> {
  // A process of the trial may stop or kill the process that kills it, so the agent tries several times.
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

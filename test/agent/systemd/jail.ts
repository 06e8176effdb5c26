/** Boots real systemd in a jail, if this machine has systemd and this process may create namespaces and cgroups. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const NAMESPACES = ['--cgroup', '--mount', '--propagation', 'private', '--pid', '--uts', '--ipc'];
const NETWORK = ['unshare', '--net', 'sh', join(import.meta.dirname, 'enter-network.sh')];
/** The places of the hierarchy of cgroup v2: alone, or together with hierarchies of cgroup v1. */
const HIERARCHIES = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'];

/** Returns the reason why systemd cannot boot in a jail; undefined if it can. */
export async function whyNoSystemd(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'only root may make namespaces';
  if (!existsSync('/lib/systemd/systemd'))
    return 'this machine has no systemd: on Debian, apt-get install systemd';
  if (hierarchy() === undefined) return 'this machine has no cgroups of version 2';
  const exchange = mkdtempSync(join(tmpdir(), 'refit-exchange-'));
  try {
    const { status, output } = await bootInJail(['/bin/true'], exchange, 60_000);
    return status === 0 ? undefined : `systemd does not boot: ${output.trim().split('\n').at(-1)}`;
  } finally {
    rmSync(exchange, { recursive: true });
  }
}

function hierarchy(): string | undefined {
  return HIERARCHIES.find(
    (path) =>
      existsSync(join(path, 'cgroup.procs')) && existsSync(join(path, 'cgroup.controllers')),
  );
}

interface JailResult {
  readonly status: number | null;
  readonly output: string;
}

/** Boots systemd and runs the program. When this promise resolves, all processes of the program have ended. */
export async function bootInJail(
  program: readonly string[],
  exchange: string,
  timeoutMs: number,
): Promise<JailResult> {
  return await boot(NETWORK, program, exchange, timeoutMs);
}

/** Works like `bootInJail`, but in the network of this process, as one of several hosts. */
export async function bootAsHost(
  program: readonly string[],
  exchange: string,
  timeoutMs: number,
): Promise<JailResult> {
  return await boot([], program, exchange, timeoutMs);
}

async function boot(
  before: readonly string[],
  program: readonly string[],
  exchange: string,
  timeoutMs: number,
): Promise<JailResult> {
  const directory = mkdtempSync(join(tmpdir(), 'refit-systemd-'));
  const group = join(hierarchy() ?? '', basename(directory));
  mkdirSync(group);
  const enter = join(import.meta.dirname, 'enter-jail.sh');
  try {
    const own = [...before, 'unshare', ...NAMESPACES, '--fork', '--kill-child'];
    const jail = [...own, 'sh', enter, directory, ROOT, exchange, ...program];
    const inGroup = ['-ec', 'echo $$ >"$0/cgroup.procs"; exec "$@"', group, ...jail];
    const child = spawn('sh', inGroup, {
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    let output = '';
    child.stderr.on('data', (chunk) => {
      output += String(chunk);
    });
    const [status] = (await once(child, 'close')) as [number | null];
    const file = join(exchange, 'output');
    return { status, output: (existsSync(file) ? readFileSync(file, 'utf8') : '') + output };
  } finally {
    removeGroup(group);
    rmSync(directory, { recursive: true });
  }
}

/**
 * Removes a cgroup and its children, the innermost first. All processes must have ended, which takes a moment if a jail
 * was killed.
 */
function removeGroup(group: string): void {
  spawnSync('sh', [
    '-c',
    'for try in 1 2 3 4 5 6 7 8 9 10; do find "$0" -depth -type d -exec rmdir {} \\; 2>/dev/null; [ -e "$0" ] || exit 0; sleep 0.2; done',
    group,
  ]);
  if (existsSync(group)) rmdirSync(group);
}

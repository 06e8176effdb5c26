/** Boots real systemd in a jail, where this machine has it and this process may make namespaces and cgroups. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const NAMESPACES = ['--cgroup', '--mount', '--propagation', 'private', '--pid', '--uts', '--ipc'];
const NETWORK = ['unshare', '--net', 'sh', join(import.meta.dirname, 'enter-network.sh')];
/** Where the hierarchy of version 2 is, alone or beside those of version 1. */
const HIERARCHIES = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'];

/** Why it cannot be; undefined where it can. */
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

/** Everything that the program started is gone when this resolves. */
export async function bootInJail(
  program: readonly string[],
  exchange: string,
  timeoutMs: number,
): Promise<JailResult> {
  return await boot(NETWORK, program, exchange, timeoutMs);
}

/** The same in the network of this process, as one of several hosts. */
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

/** A cgroup is removed from the inside out, once its processes are gone; those of a killed jail take a moment. */
function removeGroup(group: string): void {
  spawnSync('sh', [
    '-c',
    'for try in 1 2 3 4 5 6 7 8 9 10; do find "$0" -depth -type d -exec rmdir {} \\; 2>/dev/null; [ -e "$0" ] || exit 0; sleep 0.2; done',
    group,
  ]);
  if (existsSync(group)) rmdirSync(group);
}

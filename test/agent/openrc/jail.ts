/** Runs a program with real OpenRC, if the packages of OpenRC are unpacked and this process may create namespaces. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const NAMESPACES = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child'];

/** The folder into which `.ci/run` unpacks the packages of OpenRC. */
export const OPENRC = join(
  process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'),
  'refit',
  'openrc',
);

/** Returns the reason why the jail cannot be used; undefined if it can be used. */
export function whyNoOpenRc(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may make namespaces';
  if (!existsSync(join(OPENRC, 'usr/sbin/supervise-daemon')))
    return `${OPENRC} does not hold Debian's package openrc`;
  const { status, stderr, error } = runInJail(['true'], 60_000);
  return status === 0
    ? undefined
    : `the jail cannot be made: ${error?.message ?? stderr.trim().split('\n').at(-1)}`;
}

/**
 * Runs the program in the jail. When this function returns, all processes of the program have ended. The program may
 * write only to the folder `exchange`.
 */
export function runInJail(
  program: readonly string[],
  timeoutMs: number,
  exchange = '',
): { status: number | null; stdout: string; stderr: string; error?: Error | undefined } {
  const directory = mkdtempSync(join(tmpdir(), 'refit-openrc-'));
  const enter = join(import.meta.dirname, 'enter-jail.sh');
  try {
    const args = [...NAMESPACES, 'sh', enter, OPENRC, directory, ROOT, ...program];
    const env = { ...process.env, EXCHANGE: exchange };
    return spawnSync('unshare', args, {
      encoding: 'utf8',
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      env,
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
}

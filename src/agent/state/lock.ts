/** Locks a state directory for one agent. If the process that holds the lock has ended, the lock is free. */
import { link, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { RefitError } from '../../util/errors.ts';
import { parseJson } from '../../util/json.ts';
import { isSameProcess, type ProcessId } from '../service/host.ts';
import { findProcess } from '../service/processes.ts';
import { unless } from './trusted-path.ts';

/**
 * Acquires the lock for the process `pid`. The lock is the file `<path>.<n>` with the highest number. If its holder has
 * ended, an agent acquires the lock by creating the file with the next number. Only one agent can create that file. If
 * agents overwrote one file instead, two agents could acquire the lock at the same moment. Rejects with REFIT_AGENT
 * while a running process holds the lock.
 */
export async function takeLock(path: string, pid: number): Promise<void> {
  const draft = `${path}-${pid}`;
  await writeFile(draft, JSON.stringify(findProcess(pid)), { mode: 0o600 });
  try {
    for (;;) {
      const earlier = await generations(path);
      const [latest = 0] = earlier;
      await assertFree(`${path}.${latest}`);
      if (!(await tryLink(draft, `${path}.${latest + 1}`))) continue;
      for (const number of earlier) await rm(`${path}.${number}`, { force: true });
      return;
    }
  } finally {
    await rm(draft, { force: true });
  }
}

/**
 * Rejects with REFIT_AGENT if a running process holds this lock file. A file that is missing or cannot be read does not
 * count as a lock.
 */
export async function assertFree(file: string): Promise<void> {
  const holder = await readHolder(file);
  if (holder === undefined) return;
  // Guard lock-holder. A second agent must not act on this host.
  if (isSameProcess(findProcess(holder.pid), holder))
    throw new RefitError('REFIT_AGENT', `another agent (PID ${holder.pid}) uses ${dirname(file)}`);
}

async function readHolder(file: string): Promise<ProcessId | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  return parseJson(text) as ProcessId | undefined;
}

/** Lists the numbers of the existing lock files, highest first. */
async function generations(path: string): Promise<number[]> {
  const prefix = `${basename(path)}.`;
  const names = (await readdir(dirname(path))).filter((name) => name.startsWith(prefix));
  return names
    .map((name) => Number(name.slice(prefix.length)))
    .filter((number) => number > 0)
    .toSorted((a, b) => b - a);
}

/** Returns false if another agent created the lock file first. */
async function tryLink(draft: string, lock: string): Promise<boolean> {
  const linked = await unless(
    'EEXIST',
    link(draft, lock).then(() => true),
  );
  return linked === true;
}

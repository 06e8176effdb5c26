/** Changes files and keys on this host: all of them, or none. Killed anywhere, the next agent puts all back. */
import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ConfigurationItem } from '../../signal/node-configuration.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { syncPath, writeDurably } from '../state/durable-files.ts';
import { type FileState, readRootFile, writeRootFile } from './root-file.ts';
import { readKeys, writeKeys } from './user-keys.ts';

export interface ChangeParts {
  /** Comes before each path; empty but in tests. */
  readonly root: string;
  /** Of the agent. */
  readonly stateDirectory: string;
}

/** By path, or by `user:NAME`, what was there, and what was to be. */
type Journal = readonly (readonly [name: string, before: FileState | undefined, after: FileState])[];

/** Rejects with the reason once nothing is changed any more; if `stop` aborts, the next `putBack` does that. */
export async function changeHost(parts: ChangeParts, items: readonly ConfigurationItem[], stop: AbortSignal) {
  const all = items.map(async ({ name, content, mode }) => {
    const after = { content, mode, gid: process.getgid?.() ?? 0 };
    return [name, await read(parts, name, after), after] as const;
  });
  const saved: Journal = (await Promise.all(all)).filter(([, before, after]) => !sameJson(before, after));
  if (saved.length === 0) return;
  const journal = journalIn(parts);
  await writeDurably(journal, JSON.stringify(saved));
  try {
    for (const [name, , after] of saved) await write(parts, name, after);
  } catch (cause) {
    stop.throwIfAborted();
    const yet = (error: unknown): string => `not all could be put back yet (${messageOf(error)})`;
    const end = await putBack(parts).then(() => 'all were put back', yet);
    throw new Error(`cannot change the files; ${end}`, { cause });
  }
  await rename(journal, `${journal}.previous`);
  await syncPath(dirname(journal));
}

/** True if a change was not complete. */
export async function putBack(parts: ChangeParts): Promise<boolean> {
  const journal = journalIn(parts);
  if (!existsSync(journal)) return false;
  const saved = JSON.parse(await readFile(journal, 'utf8')) as Journal;
  // One that cannot be put back must not keep the others from it.
  const written = saved.map(async ([name, before, after]) => {
    // What somebody else wrote since then stays.
    if (sameJson(await read(parts, name, after), after)) await write(parts, name, before ?? undefined);
  });
  const failed = (await Promise.allSettled(written)).find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
  await rm(journal);
  await syncPath(dirname(journal));
  return true;
}

async function read({ root }: ChangeParts, name: string, wanted: FileState): Promise<FileState | undefined> {
  return await (name.startsWith('/') ? readRootFile(root + name) : readKeys(root, name.slice('user:'.length), wanted));
}

async function write({ root }: ChangeParts, name: string, state: FileState | undefined): Promise<void> {
  await (name.startsWith('/') ? writeRootFile(root + name, state) : writeKeys(root, name.slice('user:'.length), state));
}

const journalIn = ({ stateDirectory }: ChangeParts): string => join(stateDirectory, 'journal-configuration.json');

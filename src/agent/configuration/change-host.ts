/** Changes files, keys and the kubelet's arguments on this host: all of them, or none. Killed anywhere, the next agent puts all back. */
import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ConfigurationItem } from '../../signal/node-configuration.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { runProgram } from '../../util/run-program.ts';
import { syncPath, writeDurably } from '../state/durable-files.ts';
import { isArgument, KUBELET_FLAGS, withArguments, wordsFor } from './kubelet.ts';
import { type FileState, readRootFile, writeRootFile } from './root-file.ts';

export interface ChangeParts {
  /** Comes before each path; empty but in tests. */
  readonly root: string;
  readonly journal: string;
  /** Rejects with what the kubelet says of arguments that it does not know. */
  readonly checkKubelet: (args: readonly string[]) => Promise<void>;
  /** Resolves once it is up again; rejects with the reason if it does not come up. */
  readonly restartKubelet: () => Promise<void>;
}

/** By path, or by `user:NAME`, what was there, and what was to be. */
type Entry = readonly [name: string, before: FileState | undefined, after: FileState];
type Journal = readonly Entry[];

/** Rejects with the reason once nothing is changed any more; if `stop` aborts, the next `putBack` does that. */
export async function changeHost(
  parts: ChangeParts,
  items: readonly ConfigurationItem[],
  stop: AbortSignal,
) {
  const { args = [], others = [] } = Object.groupBy(items, (item) =>
    isArgument(item) ? 'args' : 'others',
  );
  const flags = args.length > 0 ? await readRootFile(parts.root + KUBELET_FLAGS) : undefined;
  const own: Entry[] = args.length > 0 ? [[KUBELET_FLAGS, flags, withArguments(flags, args)]] : [];
  const all = others.map(async ({ name, content, mode }): Promise<Entry> => {
    const after = { content, mode, gid: process.getgid?.() ?? 0 };
    return [name, await read(parts, name, after), after];
  });
  const saved: Journal = [...(await Promise.all(all)), ...own].filter(
    ([, before, after]) => !sameJson(before, after),
  );
  if (saved.length === 0) return;
  const isRestarted = saved.some(([name]) => name === KUBELET_FLAGS);
  if (isRestarted) await parts.checkKubelet(wordsFor(args));
  const { journal } = parts;
  await writeDurably(journal, JSON.stringify(saved));
  try {
    for (const [name, , after] of saved) await write(parts, name, after);
    if (isRestarted) await parts.restartKubelet();
  } catch (cause) {
    stop.throwIfAborted();
    const yet = (error: unknown): string =>
      `not all of it could be put back yet (${messageOf(error)})`;
    const end = await putBack(parts).then(() => 'all of it was put back', yet);
    throw new Error(`cannot change the configuration; ${end}`, { cause });
  }
  await rename(journal, `${journal}.previous`);
  await syncPath(dirname(journal));
}

/** True if a change was not complete. */
export async function putBack(parts: ChangeParts): Promise<boolean> {
  const { journal } = parts;
  if (!existsSync(journal)) return false;
  const saved = JSON.parse(await readFile(journal, 'utf8')) as Journal;
  // One that cannot be put back must not keep the others from it.
  const written = await Promise.allSettled(
    saved.map(async (entry) => await putOneBack(parts, entry)),
  );
  const failed = written.find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
  await rm(journal);
  await syncPath(dirname(journal));
  return true;
}

async function putOneBack(parts: ChangeParts, [name, before, after]: Entry): Promise<void> {
  const isKubelet = name === KUBELET_FLAGS;
  const restartIsDue = `${parts.journal}.restart`;
  // What somebody else wrote since then stays.
  if (sameJson(await read(parts, name, after), after)) {
    // Known to the next agent, too: nothing else tells that a kubelet runs with what is in the file no more.
    if (isKubelet) await writeDurably(restartIsDue, '');
    await write(parts, name, before ?? undefined);
  }
  if (!isKubelet || !existsSync(restartIsDue)) return;
  // If it does not come up with these either, another restart helps nobody.
  await parts.restartKubelet().catch(() => undefined);
  await rm(restartIsDue);
}

async function read(
  { root }: ChangeParts,
  name: string,
  wanted: FileState,
): Promise<FileState | undefined> {
  return await (name.startsWith('/')
    ? readRootFile(root + name)
    : readKeys(root, name.slice('user:'.length), wanted));
}

async function write(
  { root }: ChangeParts,
  name: string,
  state: FileState | undefined,
): Promise<void> {
  await (name.startsWith('/')
    ? writeRootFile(root + name, state)
    : writeKeys(root, name.slice('user:'.length), state));
}

const KEYS = '.ssh/authorized_keys';
const WRITE = `umask 077; mkdir -p .ssh && cat >${KEYS}.refit && sync ${KEYS}.refit && mv -f ${KEYS}.refit ${KEYS} && sync .ssh`;
const USER_PATIENCE_MS = 10_000;

/** The keys that may log in as a user; undefined where there is no such file. As that user: a link in the home must not lead root elsewhere. Its mode is as sshd wants it. */
async function readKeys(root: string, user: string, { mode, gid }: Omit<FileState, 'content'>) {
  const keys = await runAs(root, user, `[ -e ${KEYS} ] || exit 3; [ -f ${KEYS} ] && cat ${KEYS}`);
  return keys === undefined
    ? undefined
    : { content: Buffer.from(keys).toString('base64'), mode, gid };
}

async function writeKeys(root: string, user: string, state: FileState | undefined): Promise<void> {
  if (state) await runAs(root, user, WRITE, Buffer.from(state.content, 'base64').toString('utf8'));
  else await runAs(root, user, `rm -f ${KEYS} ${KEYS}.refit`);
}

async function runAs(
  root: string,
  user: string,
  script: string,
  input = '',
): Promise<string | undefined> {
  const lines = (await readFile(`${root}/etc/passwd`, 'utf8'))
    .split('\n')
    .map((line) => line.split(':'));
  const [, , uid, gid, , home] = lines.find(([name]) => name === user) ?? [];
  if (!uid || !gid || !home) throw new Error(`/etc/passwd of this host has no user ${user}`);
  const as = {
    uid: Number(uid),
    gid: Number(gid),
    env: { HOME: root + home, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  };
  const options = { input, patienceMs: USER_PATIENCE_MS, as };
  const { code, stdout, stderr } = await runProgram(
    '/bin/sh',
    ['-c', `cd "$HOME" || exit 1; ${script}`],
    options,
  );
  if (code === 0) return stdout;
  if (code === 3) return undefined;
  const why = stderr.trim().split('\n').at(-1)?.slice(0, 200);
  throw new Error(`cannot use ${KEYS} of user ${user}: ${why || 'it is no plain file'}`);
}

/**
 * Changes files, SSH keys and the kubelet's arguments on this host: all of them, or none. If the agent is killed at any
 * point, the next agent restores what was there before.
 */
import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type ConfigurationItem, isArgument } from '../../signal/node-configuration.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { runProgram } from '../../util/run-program.ts';
import { syncPath, writeDurably } from '../state/durable-files.ts';
import { KUBELET_FLAGS, withArguments, wordsFor } from './kubelet.ts';
import { type FileState, readRootFile, writeRootFile } from './root-file.ts';

export interface ChangeParts {
  /** The prefix of each path on the host. It is empty except in tests. */
  readonly root: string;
  readonly journal: string;
  /** Rejects with the kubelet's error message if the kubelet does not know an argument. */
  readonly checkKubelet: (args: readonly string[]) => Promise<void>;
  /** Resolves once the kubelet runs again. Rejects with the reason if it does not start. */
  readonly restartKubelet: () => Promise<void>;
}

/**
 * One file or the keys of one user. `name` is the path or `user:NAME`, `before` is the state on the host before the change, and `after` is
 * the state that the request wants.
 */
type Entry = readonly [name: string, before: FileState | undefined, after: FileState];
type Journal = readonly Entry[];

/**
 * Changes what the items name. If anything fails, it restores everything and rejects with the reason. If `stop` aborts,
 * it rejects at once, and the next call of `putBack` restores everything.
 */
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
    const end = await putBack(parts).then(
      () => 'everything was restored',
      (error: unknown) => `not everything could be restored yet (${messageOf(error)})`,
    );
    throw new Error(`cannot change the configuration; ${end}`, { cause });
  }
  await rename(journal, `${journal}.previous`);
  await syncPath(dirname(journal));
}

/**
 * Restores what an incomplete change replaced. Returns false if no change was incomplete. Rejects if something could
 * not be restored; the caller then tries again.
 */
export async function putBack(parts: ChangeParts): Promise<boolean> {
  const { journal } = parts;
  if (!existsSync(journal)) return false;
  const saved = JSON.parse(await readFile(journal, 'utf8')) as Journal;
  // A file that cannot be restored must not prevent the others from being restored.
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
  // Only a file that still has the state of the request is restored. A file that somebody else has changed since stays as it is.
  if (sameJson(await read(parts, name, after), after)) {
    // The next agent must know that a restart is due. Once the file is restored, nothing else shows that the kubelet
    // still runs with the new arguments.
    if (isKubelet) await writeDurably(restartIsDue, '');
    await write(parts, name, before ?? undefined);
  }
  if (!isKubelet || !existsSync(restartIsDue)) return;
  // If the kubelet does not start with the old arguments either, another restart does not help.
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

/**
 * Returns the SSH keys with which a user may log in; undefined if the file does not exist. The command runs as that
 * user, because root must not follow a link in the home directory to a file of somebody else. The returned mode is the
 * mode that sshd requires, not the mode on the disk.
 */
async function readKeys(
  root: string,
  user: string,
  { mode, gid }: FileState,
): Promise<FileState | undefined> {
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
  // Guard keys-user. Root follows no link in the home directory of a user.
  const options = { input, patienceMs: USER_PATIENCE_MS, as };
  const { code, stdout, stderr } = await runProgram(
    '/bin/sh',
    ['-c', `cd "$HOME" || exit 1; ${script}`],
    options,
  );
  if (code === 0) return stdout;
  if (code === 3) return undefined;
  const why = stderr.trim().split('\n').at(-1)?.slice(0, 200);
  throw new Error(`cannot use ${KEYS} of user ${user}: ${why || 'it is not a plain file'}`);
}

/** Checks that only root, or the agent's own user, can change a file or any directory on its path. */
import { constants, lstatSync, readlinkSync, type Stats } from 'node:fs';
import { mkdir, open, readFile, rmdir } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { unlessError } from '../../util/errors.ts';
import { syncPath } from './durable-files.ts';

const OTHERS_WRITE = 0o002;
const GROUP_WRITES = 0o020;
const STICKY = 0o1000;
const MAX_LINKS = 40;

/**
 * The error that reports that somebody else could change a path. The problem lasts until a person fixes it, and the
 * message says how to fix it.
 */
export class DistrustError extends Error {
  override readonly name = 'DistrustError';
}

/** Returns true for root, and for the user of this process. */
export function isTrustedUser(uid: number): boolean {
  // Guard trusted-user. Only root and this user are trusted.
  return uid === 0 || uid === process.getuid?.();
}

/**
 * Rejects with the first file, directory or link that somebody else could change. Rejects with ENOENT if the file is
 * missing.
 */
export async function assertTrustedPath(path: string): Promise<void> {
  const rest = path.split('/').filter((name) => name !== '');
  let at = '/';
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === '.') continue;
    if (name === '..') at = dirname(at);
    const next = name === '..' ? at : join(at, name);
    const found = lstatSync(next);
    // Guard trusted-owner. Its owner can replace what the path leads to.
    if (!isTrustedUser(found.uid)) {
      const owner = `user ${found.uid}, but must belong to root`;
      throw new DistrustError(`${next} belongs to ${owner}; run "chown -h root ${next}"`);
    }
    // Guard trusted-target. The target of a link is checked like the path itself.
    if (found.isSymbolicLink()) {
      if (++links > MAX_LINKS) throw new Error(`${path} has too many symbolic links`);
      const target = readlinkSync(next);
      if (isAbsolute(target)) at = '/';
      rest.unshift(...target.split('/').filter((part) => part !== ''));
      continue;
    }
    // Guard trusted-parents. Others may write to no folder of the path, and not to the file.
    if (await isWritable(found, rest.length === 0))
      throw new DistrustError(`others may write to ${next}; run "chmod go-w ${next}"`);
    at = next;
  }
}

/**
 * Returns true if users other than root, or the agent's own user and group, can change the file. The mode of a socket
 * does not count, because it only controls who may connect to the socket. It does not control who answers on it.
 */
async function isWritable(found: Stats, isLast: boolean): Promise<boolean> {
  const { mode, gid } = found;
  if (found.isSocket()) return false;
  // In a sticky directory such as /tmp, other users cannot replace a file of root.
  // Guard trusted-sticky. The sticky bit protects only files that exist already.
  if (found.isDirectory() && !isLast && (mode & STICKY) !== 0) return false;
  // Guard others-write. Nobody but root and its group may write.
  if ((mode & OTHERS_WRITE) !== 0) return true;
  // Guard group-writes. Members of another group could change the file.
  return (mode & GROUP_WRITES) !== 0 && gid !== process.getgid?.() && !(await isEmptyStaff(gid));
}

export type FileTrust = typeof fileTrust;

/** Checks paths of the host before the agent changes files there. */
export const fileTrust = {
  /** Rejects unless only root can change the file or directory. Rejects with ENOENT if it is missing. */
  assertTrusted: assertTrustedPath,
  /** Rejects unless only root can change the file and the names in its directory. The file may be missing. */
  async assertReplaceable(path: string): Promise<void> {
    // Backed by replaceable-file. A missing folder is an error.
    await assertTrustedPath(dirname(path));
    // Guard replaceable-file. Nobody else can create, rename or change the file.
    await unless('ENOENT', assertTrustedPath(path));
  },
  /**
   * Creates a directory that nobody else can read. If the directory exists, its mode is changed so that nobody else can
   * read it. Rejects if the directory belongs to another user.
   */
  async makePrivate(directory: string): Promise<void> {
    // Guard made-parent. Nobody else can replace the new directory.
    await assertTrustedPath(dirname(directory));
    // Backed by made-private. The mode of a directory that exists may differ.
    await unless('EEXIST', mkdir(directory, { mode: 0o700 }));
    // Guard made-link. The directory is no link to another place.
    await using handle = await open(
      directory,
      constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
    );
    const { uid, mode } = await handle.stat();
    // Guard made-owner. Its owner could open the directory again.
    if (!isTrustedUser(uid)) throw new Error(`${directory} belongs to user ${uid}; remove it`);
    // Guard made-private. Nobody else can look into the directory.
    if ((mode & 0o777) !== 0o700) await handle.chmod(0o700);
    await syncPath(dirname(directory));
  },
  async removeEmpty(directory: string): Promise<void> {
    await unless('ENOTEMPTY', unless('ENOENT', rmdir(directory)));
    await unless('ENOENT', syncPath(dirname(directory)));
  },
};

/** Resolves with undefined if the work fails with this error code of Node.js. */
export async function unless<T>(code: string, work: Promise<T>): Promise<T | undefined> {
  return await unlessError((error) => (error as NodeJS.ErrnoException).code === code)(work);
}

/**
 * The name of the only group that may have write access, and only if it has no members. Other groups without members
 * belong to set-group-id programs and to services.
 */
const NAME = 'staff';
/**
 * With these sources, files list all members of a group. With another source, such as LDAP, a group may have more
 * members than the files list.
 */
const COMPLETE = ['files', 'compat', 'systemd'];

/**
 * Returns true if the group is `staff` and certainly has no member except root. On Debian this group may write to
 * /usr/local.
 */
export async function isEmptyStaff(gid: number, directory = '/etc'): Promise<boolean> {
  const [sources, group, passwd, gshadow] = await Promise.all(
    ['nsswitch.conf', 'group', 'passwd', 'gshadow'].map(
      async (name) => await fieldsOf(join(directory, name)),
    ),
  );
  if (sources === undefined || group === undefined || passwd === undefined || gshadow === undefined)
    return false;
  const databases = sources.filter(([name = '']) =>
    ['group', 'passwd', 'initgroups'].includes(name.trim()),
  );
  const named = databases.map(([, text = '']) => text.replace(/\[[^[\]]*\]/g, '').trim());
  const isComplete = named.every((text) =>
    text.split(/\s+/).every((word) => COMPLETE.includes(word)),
  );
  // With the source `compat`, lines that begin with these characters name users of another source.
  const isMixed = [...group, ...passwd].some(([name = '']) => /^[+-]/.test(name));
  const groups = group.filter(([, , id]) => Number(id) === gid);
  const shadows = gshadow.filter(([name]) => groups.some(([own]) => own === name));
  const isPrimary = passwd.some(([user, , , id]) => user !== 'root' && Number(id) === gid);
  // In both files the last field contains the members, and the second field contains the password.
  const entries = [...groups, ...shadows];
  const isLocked = entries.every(([, password = '']) =>
    ['x', '*', '!', '!*', '!!', ''].includes(password),
  );
  const hasMembers = entries.some((entry) => membersIn(entry.at(-1)).length > 0);
  // Guard staff-members. Nobody may be or become a member of the group.
  if (!isComplete || isMixed || isPrimary || !isLocked || hasMembers) return false;
  // Guard staff-name. Other groups without members belong to services.
  return groups.length > 0 && groups.every(([name]) => name === NAME);
}

/** Returns the members of the list except root. */
function membersIn(list = ''): string[] {
  return list.split(',').filter((name) => !['', 'root'].includes(name.trim()));
}

/**
 * Returns the lines of a file, split at colons. Returns an empty list if the file is missing, and undefined if it
 * cannot be read.
 */
async function fieldsOf(path: string): Promise<string[][] | undefined> {
  const text = await readFile(path, 'utf8').catch(({ code }: NodeJS.ErrnoException) =>
    code === 'ENOENT' ? '' : undefined,
  );
  return text?.split('\n').map((line) => line.replace(/#.*/, '').split(':'));
}

/** Tells whether a group has no member but root, as `staff` has on Debian, which may write to /usr/local. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Only their files can be read as a whole: another source, such as LDAP, may know more members. */
const COMPLETE = ['files', 'compat', 'systemd', 'altfiles'];

/** False where it is not certain: for an unknown group, one with a password, and where names come from elsewhere, too. */
export async function isEmptyGroup(gid: number, directory = '/etc'): Promise<boolean> {
  const [sources, group, passwd, gshadow] = await Promise.all(
    ['nsswitch.conf', 'group', 'passwd', 'gshadow'].map(async (name) => await fieldsOf(join(directory, name))),
  );
  if (sources === undefined || group === undefined || passwd === undefined || gshadow === undefined) return false;
  const isComplete = sources
    .filter(([database = '']) => ['group', 'passwd', 'initgroups'].includes(database.trim()))
    .every(([, text = '']) =>
      text
        .replace(/\[.*?\]/g, '')
        .trim()
        .split(/\s+/)
        .every((word) => COMPLETE.includes(word)),
    );
  const groups = group.filter(([, , id]) => Number(id) === gid);
  const shadows = gshadow.filter(([name]) => groups.some(([own]) => own === name));
  const isPrimary = passwd.some(([user, , , id]) => user !== 'root' && Number(id) === gid);
  // The members come last in both files, the password second.
  const isClosed = [...groups, ...shadows].every(
    (entry) => membersIn(entry.at(-1)).length === 0 && ['x', '*', '!', '!*', '!!', ''].includes(entry[1] ?? ''),
  );
  return isComplete && groups.length > 0 && isClosed && !isPrimary;
}

/** Lines split at colons; none for a missing file, undefined for an unreadable one. */
async function fieldsOf(path: string): Promise<string[][] | undefined> {
  const text = await readFile(path, 'utf8').catch(({ code }: NodeJS.ErrnoException) =>
    code === 'ENOENT' ? '' : undefined,
  );
  return text?.split('\n').map((line) => line.replace(/#.*/, '').split(':'));
}

function membersIn(list = ''): string[] {
  return list.split(',').filter((name) => !['', 'root'].includes(name.trim()));
}

/** Tells whether the group `staff`, which may write to /usr/local on Debian, has no member but root. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Other groups without members are those of set-group-id programs and of services. */
const NAME = 'staff';
/** Only their files can be read as a whole: another source, such as LDAP, may know more members. */
const COMPLETE = ['files', 'compat', 'systemd'];

/** False where it is not certain: for another group, one with a password, and where names come from elsewhere, too. */
export async function isEmptyStaff(gid: number, directory = '/etc'): Promise<boolean> {
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
  // With `compat`, such lines name users of another source.
  const isMixed = [...group, ...passwd].some(([name = '']) => /^[+-]/.test(name));
  const groups = group.filter(([, , id]) => Number(id) === gid);
  const shadows = gshadow.filter(([name]) => groups.some(([own]) => own === name));
  const isPrimary = passwd.some(([user, , , id]) => user !== 'root' && Number(id) === gid);
  // The members come last in both files, the password second.
  const isClosed = [...groups, ...shadows].every(
    (entry) => membersIn(entry.at(-1)).length === 0 && ['x', '*', '!', '!*', '!!', ''].includes(entry[1] ?? ''),
  );
  return (
    isComplete && !isMixed && groups.length > 0 && groups.every(([name]) => name === NAME) && isClosed && !isPrimary
  );
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

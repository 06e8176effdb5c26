/**
 * Tests when a group counts as empty. The files have the format of the files in /etc. Each case changes one detail of
 * these files.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isEmptyStaff } from './trusted-path.ts';

const FILES = {
  'nsswitch.conf':
    '# hosts: dns\npasswd: files systemd\ngroup:  files [SUCCESS=merge] systemd\nhosts: dns\n',
  passwd: 'root:x:0:0:root:/root:/bin/sh\nana:x:1000:1000::/home/ana:/bin/sh\n',
  group: 'root:x:0:\nstaff:x:50:\nana:x:1000:ana\n',
  gshadow: 'root:*::\nstaff:*::\nana:!::ana\n',
};

test.each<[string, Partial<typeof FILES>, boolean]>([
  ['nobody in it', {}, true],
  ['root in it', { group: 'staff:x:50:root\n' }, true],
  ['no nsswitch.conf, no gshadow', { 'nsswitch.conf': '', gshadow: '' }, true],
  ['another name, such as tty', { group: 'tty:x:50:\n', gshadow: 'tty:*::\n' }, false],
  ['a member', { group: 'staff:x:50:root,ana\n' }, false],
  ['a member in a second line', { group: 'staff:x:50:\nstaff:x:50:ana\n' }, false],
  ['a member in gshadow only', { gshadow: 'staff:*::ana\n' }, false],
  ['a user whose primary group it is', { passwd: 'ana:x:1000:50::/:/bin/sh\n' }, false],
  ['a password', { gshadow: 'staff:$6$abc::\n' }, false],
  ['no entry', { group: 'root:x:0:\n' }, false],
  ['members from LDAP', { 'nsswitch.conf': 'group: files ldap\n' }, false],
  ['users from SSSD', { 'nsswitch.conf': 'passwd: files sss\n' }, false],
])('whether root alone is in a group with %s', async (_name, changed, isEmpty) => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-etc-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  for (const [name, text] of Object.entries({ ...FILES, ...changed }))
    if (text !== '') await writeFile(join(directory, name), text);
  expect(await isEmptyStaff(50, directory)).toBe(isEmpty);
});

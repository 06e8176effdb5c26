/** Shows the name of the user who runs a command. */
import { expect, test } from 'vitest';
import { userName } from './user-name.ts';

test('a user that no passwd file names is named by number', () => {
  const unnamed = (): never => {
    throw new Error('ENOENT: no such file or directory, uv_os_get_passwd');
  };
  expect([userName(() => ({ username: 'ann' })), userName(unnamed, 54_321)]).toEqual([
    'ann',
    'uid-54321',
  ]);
});

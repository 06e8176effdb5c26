/** Names the user of this process. */
import { userInfo } from 'node:os';
import { ifPossible } from '../util/errors.ts';

/** Containers often run as a user that no passwd file names. */
export function userName(
  read: () => { readonly username: string } = userInfo,
  uid = process.getuid?.(),
): string {
  return ifPossible(read)?.username ?? `uid-${uid}`;
}

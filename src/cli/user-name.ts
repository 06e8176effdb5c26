/** Names the user of this process. */
import { userInfo } from 'node:os';
import { ifPossible } from '../util/errors.ts';

/** Returns the name of the user, or `uid-<number>` in a container whose passwd file lacks the user. */
export function userName(
  read: () => { readonly username: string } = userInfo,
  uid = process.getuid?.(),
): string {
  return ifPossible(read)?.username ?? `uid-${uid}`;
}

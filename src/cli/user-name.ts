/** Names the user of this process. */
import { userInfo } from 'node:os';

/** Containers often run as a user that no passwd file names. */
export function userName(read: () => { readonly username: string } = userInfo, uid = process.getuid?.()): string {
  try {
    return read().username;
  } catch {
    return `uid-${uid}`;
  }
}

/** Owns the last line of defence: a control plane ends with the process that started it, even where that is killed with SIGKILL. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * `read` returns when the pipe closes, which the kernel does for a process that dies. Then everything named by a file
 * in `pids/` is killed, and the directory goes. It goes again where a dying process wrote into it meanwhile.
 */
const SCRIPT = `
read -r _
for file in "$1"/pids/*; do
  [ -e "$file" ] && kill -KILL "$(cat "$file")"
done
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
`;

export interface Guard {
  /** Ends what is left of the control plane, removes its directory, and ends the guard itself. */
  release(): Promise<void>;
}

/** In a session of its own, so that Ctrl-C in a terminal does not end the guard before its work. */
export function guardDirectory(directory: string): Guard {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'refit-guard', directory], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const ended = once(shell, 'close');
  // Where somebody has killed the guard, its pipe is broken, and nothing is left to release.
  shell.stdin.on('error', () => undefined);
  return {
    async release() {
      shell.stdin.end();
      await ended;
    },
  };
}

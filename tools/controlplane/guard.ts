/** Ends a control plane together with the process that started it, even after SIGKILL. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * `read` returns when the pipe closes; the kernel closes it when the process dies. Then the script kills every process in
 * `pids/` and removes the directory, a second time if a dying process wrote into it meanwhile.
 */
const SCRIPT = `
read -r _
for file in "$1"/pids/*; do
  [ -e "$file" ] && kill -KILL "$(cat "$file")"
done
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
`;

export interface Guard {
  /** Ends the rest of the control plane, removes its directory, and ends the guard. */
  release(): Promise<void>;
}

/** The guard has its own session: Ctrl-C in a terminal must not end it too early. */
export function guardDirectory(directory: string): Guard {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'refit-guard', directory], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const ended = once(shell, 'close');
  // If the guard was killed, its pipe is broken and there is nothing to release.
  shell.stdin.on('error', () => undefined);
  return {
    async release() {
      shell.stdin.end();
      await ended;
    },
  };
}

/** Keeps the cluster of a demonstration running after its end, with all that kubectl and refit need, until it is stopped. */
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { REFIT } from '../refit.ts';
import type { Ground } from './demonstration.ts';

/** Resolves when `abort` aborts. `more` are lines about what else this cluster offers. */
export async function keepRunning(
  kubeconfig: string,
  { directory, abort, say }: Pick<Ground, 'directory' | 'abort' | 'say'>,
  more: readonly string[] = [],
): Promise<void> {
  const commands = join(directory, 'bin');
  await mkdir(commands);
  await writeFile(
    join(commands, 'refit'),
    `#!/bin/sh\nexec '${process.execPath}' '${REFIT}' "$@"\n`,
    { mode: 0o755 },
  );
  const lines = [
    '',
    'The cluster keeps running. In another terminal:',
    '',
    `  export KUBECONFIG=${kubeconfig}`,
    `  export PATH=${commands}:$PATH`,
    '  kubectl get nodes',
    '  refit status',
    ...more,
    '',
    `Ctrl-C stops it and removes everything; from elsewhere: kill ${process.pid}`,
  ];
  for (const line of lines) say(line);
  if (!abort.aborted) await once(abort, 'abort');
  say('\nStopping the cluster…');
}

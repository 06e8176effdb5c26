/** The files of recorded plans: programs of both recorded releases, a bundle, and a file that is not a program. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type DownloadServer,
  type Fault,
  startDownloadServer,
} from '../../../sandbox/hosts/download-server.ts';
import { buildStandIn } from '../../../sandbox/hosts/stand-in.ts';

/** The two releases that were recorded. */
export const OLD = 'v1.36.3+k0s.0';
export const NEW = 'v1.36.3+k0s.2';

/** Serves the files under the paths of the recordings' server. Each file has the name of the last part of its path. */
export async function servePayloads(
  directory: string,
  faults: readonly Fault[],
): Promise<DownloadServer> {
  const at = (name: string): string => join(directory, name);
  await buildStandIn({ version: OLD, path: at('k0s-old') });
  await buildStandIn({ version: NEW, path: at('k0s-new') });
  await writeFile(at('bundle20.tar'), randomBytes(64_000));
  // If the kernel cannot execute a file, Node.js runs it with /bin/sh. Random bytes alone would be run as shell
  // commands, which once created files in the source tree. So the file begins with `exit`.
  await writeFile(at('garbage'), Buffer.concat([Buffer.from('exit 126\n'), randomBytes(991)]));
  const files = {
    '/b/k0s-old': at('k0s-old'),
    '/b/k0s-new': at('k0s-new'),
    '/w/bundle20.tar': at('bundle20.tar'),
    '/w/garbage': at('garbage'),
  };
  return await startDownloadServer({ files, faults });
}

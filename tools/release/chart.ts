/** Packs the chart as `helm package` does, but with the same bytes for the same content. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { filesBelow } from './files-below.ts';
import { type TarEntry, tar } from './tar.ts';

/** Returns the archive that `helm install` and `helm push` take. `time` is in seconds since 1970. */
export async function packedChart(folder: string, time: number): Promise<Buffer> {
  const entries = await Promise.all(
    (await filesBelow(folder)).map(async (file): Promise<TarEntry> => {
      return { path: `refit/${file}`, mode: 0o644, content: await readFile(join(folder, file)) };
    }),
  );
  return gzipSync(tar(entries, time), { level: 9 });
}

/** Makes the image of Refit as the release does, for the machines of this proof. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { VERSION } from '../../../../src/cli/version.ts';
import { fetchLibraries } from '../../../../tools/release/debian.ts';
import { ociArchive } from '../../../../tools/release/image.ts';
import { PLATFORMS } from '../../../../tools/release/node-package.ts';
import { buildOwnFile } from '../../../support/one-file.ts';

export const REFIT_IMAGE = `refit.dev/refit:${VERSION}`;
/** The path below the folder `parts`, which is /opt/parts on a machine. */
export const REFIT_ARCHIVE = 'refit-image/refit.tar';

export async function makeRefitImage(parts: string): Promise<void> {
  const platform = PLATFORMS.find(({ arch }) => arch === process.arch);
  if (platform === undefined) throw new Error(`no image is made for ${process.arch}`);
  const directory = join(parts, 'refit-image');
  await mkdir(directory);
  const binary = await buildOwnFile(directory);
  const libraries = await fetchLibraries(platform.debianArch);
  const archive = await ociArchive({
    version: VERSION,
    time: 0,
    platforms: [{ platform, binary, libraries }],
    level: 1,
  });
  await writeFile(join(parts, REFIT_ARCHIVE), archive);
}

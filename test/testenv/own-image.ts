/** Makes the image of Refit for this machine, as the release does, and unpacks it. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fetchLibraries } from '../../tools/release/debian.ts';
import { ociArchive } from '../../tools/release/image.ts';
import { PLATFORMS } from '../../tools/release/node-package.ts';
import { UnpackedImage } from './container.ts';

/**
 * Builds and unpacks the image. `directory` must have no folder `layout` and no folder `rootfs` yet. `binary` is the
 * one-file binary.
 */
export async function ownImage(directory: string, binary: string): Promise<UnpackedImage> {
  const platform = PLATFORMS.find(({ arch }) => arch === process.arch);
  if (platform === undefined) throw new Error(`no image is made for ${process.arch}`);
  const archive = join(directory, 'image.tar');
  const libraries = await fetchLibraries(platform.debianArch);
  // Nobody keeps this archive, so it is not compressed. The best compression takes ten seconds of CPU time, and the
  // fastest compression still takes one second.
  const content = await ociArchive({
    version: '1.2.3',
    time: 0,
    platforms: [{ platform, binary, libraries }],
    level: 0,
  });
  await writeFile(archive, content);
  return new UnpackedImage(archive, directory, platform.goArch);
}

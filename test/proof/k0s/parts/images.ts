/** The images that the workers have. Nothing can be pulled on the machines. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import type { BuildOptions } from '../../../../tools/controlplane/build.ts';
import { buildGoFile } from '../../machines/go-file.ts';
import { writeImage } from '../../machines/images.ts';

const REGISTRY = 'images.refit.internal';
/** As the configuration of k0s names an image. */
export const PAUSE = { image: `${REGISTRY}/pause`, version: '3.10' };
/** An image with a shell. */
export const SHELL = `${REGISTRY}/shell:1`;

export const IMAGES = [
  { name: `${PAUSE.image}:${PAUSE.version}`, archive: 'pause.tar' },
  { name: SHELL, archive: 'shell.tar' },
] as const;

export async function makeImages(parts: string, options: BuildOptions): Promise<void> {
  const archives = join(parts, 'images');
  await mkdir(archives, { recursive: true });
  const pause = join(parts, 'pause');
  await buildGoFile(join(import.meta.dirname, '../../machines/stand-in.go'), pause, options);
  const busybox = join(parts, 'debian/bin/busybox');
  const contents = [
    { files: { pause }, entrypoint: ['/pause'] },
    {
      files: { 'bin/busybox': busybox },
      links: Object.fromEntries(
        ['sh', 'sleep', 'cat', 'true', 'false'].map((name) => [`bin/${name}`, 'busybox']),
      ),
      environment: ['PATH=/bin'],
    },
  ];
  for (const [index, { name, archive }] of IMAGES.entries()) {
    const path = join(archives, archive);
    if (existsSync(path)) continue;
    const directory = await mkdtemp(join(archives, 'making-'));
    await writeImage(path, directory, { name, ...(contents[index] ?? { files: {} }) });
  }
}

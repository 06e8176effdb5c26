/** Makes container images without a container engine: one layer, as an archive that `ctr images import` reads. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, copyFile, cp, mkdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { must } from '../../../tools/release/commands.ts';

export interface ImageParts {
  /** Fully qualified, with its tag. */
  readonly name: string;
  /** Files on this machine by their path in the image. */
  readonly files: Readonly<Record<string, string>>;
  readonly entrypoint?: readonly string[];
  /** Folders of this machine that are copied with all their files. */
  readonly folders?: Readonly<Record<string, string>>;
  readonly links?: Readonly<Record<string, string>>;
  readonly environment?: readonly string[];
}

const OCI = 'application/vnd.oci.image';

/** Writes an image. `directory` is an empty folder for temporary files. */
export async function writeImage(
  archive: string,
  directory: string,
  parts: ImageParts,
): Promise<void> {
  const root = join(directory, 'root');
  const layout = join(directory, 'layout');
  const blobs = join(layout, 'blobs/sha256');
  for (const folder of [root, blobs, join(root, 'tmp'), join(root, 'etc')])
    await mkdir(folder, { recursive: true });
  await fill(root, parts);
  const layer = join(directory, 'layer');
  await must('tar', [
    '--sort=name',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '-cf',
    layer,
    '-C',
    root,
    '.',
  ]);
  const digest = await sha256(layer);
  const { size } = await stat(layer);
  await rename(layer, join(blobs, digest));
  const add = async (mediaType: string, value: object) => {
    const text = JSON.stringify(value);
    const hash = createHash('sha256').update(text).digest('hex');
    await writeFile(join(blobs, hash), text);
    return { mediaType: `${OCI}.${mediaType}`, digest: `sha256:${hash}`, size: text.length };
  };
  const config = await add('config.v1+json', {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: {
      Env: ['PATH=/usr/local/bin:/usr/sbin', ...(parts.environment ?? [])],
      Entrypoint: parts.entrypoint,
    },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  });
  const layers = [{ mediaType: `${OCI}.layer.v1.tar`, digest: `sha256:${digest}`, size }];
  const mediaType = `${OCI}.manifest.v1+json`;
  const manifest = await add('manifest.v1+json', { schemaVersion: 2, mediaType, config, layers });
  const annotations = { 'io.containerd.image.name': parts.name };
  await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  const index = { schemaVersion: 2, manifests: [{ ...manifest, annotations }] };
  await writeFile(join(layout, 'index.json'), JSON.stringify(index));
  await must('tar', ['-cf', `${archive}.new`, '-C', layout, '.']);
  await rename(`${archive}.new`, archive);
  await rm(directory, { recursive: true });
}

async function fill(root: string, { files, folders = {}, links = {} }: ImageParts): Promise<void> {
  const place = async (path: string): Promise<string> => {
    const at = join(root, path);
    await mkdir(dirname(at), { recursive: true });
    return at;
  };
  for (const [path, source] of Object.entries(files)) {
    const at = await place(path);
    await copyFile(source, at);
    await chmod(at, 0o755);
  }
  for (const [path, source] of Object.entries(folders))
    await cp(source, await place(path), { recursive: true, verbatimSymlinks: true });
  for (const [path, target] of Object.entries(links)) await symlink(target, await place(path));
}

async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Makes container images without a container engine: one layer, as an archive that `ctr images import` reads. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import {
  chmod,
  copyFile,
  cp,
  mkdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { must } from '../../../tools/release/commands.ts';

export interface ImageParts {
  /** Fully qualified, with its tag. */
  readonly name: string;
  /** Files on this machine by their path in the image. */
  readonly files: Readonly<Record<string, string>>;
  readonly entrypoint?: readonly string[];
  /** The arguments of the entry point if a container names none. */
  readonly command?: readonly string[];
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
  const config = await addBlob(blobs, 'config.v1+json', {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: {
      Env: ['PATH=/usr/local/bin:/usr/sbin', ...(parts.environment ?? [])],
      Entrypoint: parts.entrypoint,
      Cmd: parts.command,
    },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  });
  const layers = [{ mediaType: `${OCI}.layer.v1.tar`, digest: `sha256:${digest}`, size }];
  await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  await pack(archive, layout, parts.name, { schemaVersion: 2, config, layers });
  await rm(directory, { recursive: true });
}

export interface Derivation {
  /** The archive of the image from which the new image is made. It contains an index with one image. */
  readonly base: string;
  /** Fully qualified, with its tag. */
  readonly name: string;
  readonly entrypoint: readonly string[];
  /** Variables in addition to those of the other image. */
  readonly environment: readonly string[];
}

interface Blob {
  readonly digest: string;
}

/**
 * Writes an image with the files of another image, as a Dockerfile with FROM, ENV and ENTRYPOINT does. `directory` is
 * an empty folder for temporary files.
 */
export async function deriveImage(
  archive: string,
  directory: string,
  { base, name, entrypoint, environment }: Derivation,
): Promise<void> {
  const blobs = join(directory, 'blobs/sha256');
  await must('tar', ['-xf', base, '-C', directory]);
  const read = async <T>({ digest }: Blob): Promise<T> =>
    JSON.parse(await readFile(join(blobs, digest.slice('sha256:'.length)), 'utf8')) as T;
  const only = ({ manifests: [first] }: { manifests: readonly Blob[] }): Blob => {
    if (first === undefined) throw new Error(`${base} has no image`);
    return first;
  };
  const outer = JSON.parse(await readFile(join(directory, 'index.json'), 'utf8')) as {
    manifests: readonly Blob[];
  };
  const inner = only(await read(only(outer)));
  const manifest = await read<{ config: Blob }>(inner);
  const settings = await read<{ config: { Env?: readonly string[] } }>(manifest.config);
  const own = { Env: [...(settings.config.Env ?? []), ...environment], Entrypoint: entrypoint };
  const config = await addBlob(blobs, 'config.v1+json', {
    ...settings,
    config: { ...settings.config, ...own },
  });
  await pack(archive, directory, name, { ...manifest, config });
  await rm(directory, { recursive: true });
}

async function addBlob(blobs: string, mediaType: string, value: object) {
  const text = JSON.stringify(value);
  const hash = createHash('sha256').update(text).digest('hex');
  await writeFile(join(blobs, hash), text);
  return { mediaType: `${OCI}.${mediaType}`, digest: `sha256:${hash}`, size: text.length };
}

/** Makes the archive of the image with this manifest from the files in `layout`. */
async function pack(archive: string, layout: string, name: string, own: object): Promise<void> {
  const mediaType = `${OCI}.manifest.v1+json`;
  const blobs = join(layout, 'blobs/sha256');
  const manifest = await addBlob(blobs, 'manifest.v1+json', { ...own, mediaType });
  const annotations = { 'io.containerd.image.name': name };
  const index = { schemaVersion: 2, manifests: [{ ...manifest, annotations }] };
  await writeFile(join(layout, 'index.json'), JSON.stringify(index));
  await must('tar', ['-cf', `${archive}.new`, '-C', layout, '.']);
  await rename(`${archive}.new`, archive);
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

/** Makes the container image as an OCI archive, for all platforms, without a container engine. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { rootCertificates } from 'node:tls';
import { gzipSync } from 'node:zlib';
import type { Libraries } from './debian.ts';
import type { Platform } from './node-package.ts';
import { type TarEntry, tar } from './tar.ts';

/** The user `nonroot` of most images without a shell. */
const USER = 65_532;
const OCI = 'application/vnd.oci.image';

export interface ImageParts {
  readonly version: string;
  /** Seconds since 1970. */
  readonly time: number;
  readonly platforms: readonly {
    readonly platform: Platform;
    /** Path of the one-file binary. */
    readonly binary: string;
    readonly libraries: Libraries;
  }[];
  /** The level of gzip: 0 for no compression, 1 to 9 for smaller images. Default: 9, for the smallest image. */
  readonly level?: number;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** The archive: an OCI image layout with one index over the platforms. */
export async function ociArchive({
  version,
  time,
  platforms,
  level = 9,
}: ImageParts): Promise<Buffer> {
  const blobs = new Map<string, Buffer>();
  const add = (mediaType: string, content: Buffer): Descriptor => {
    const hash = sha256(content);
    blobs.set(`blobs/sha256/${hash}`, content);
    return { mediaType, digest: `sha256:${hash}`, size: content.length };
  };
  const created = new Date(time * 1000).toISOString();
  const manifests = [];
  for (const { platform, binary, libraries } of platforms) {
    const tars = [
      tar(baseEntries(libraries), time),
      tar(programEntries(await readFile(binary)), time),
    ];
    const layers = tars.map((layer) => add(`${OCI}.layer.v1.tar+gzip`, gzipSync(layer, { level })));
    const diffs = tars.map((layer) => `sha256:${sha256(layer)}`);
    const place = { architecture: platform.goArch, os: 'linux' };
    const config = add(
      `${OCI}.config.v1+json`,
      json({
        created,
        ...place,
        config: settings(version),
        rootfs: { type: 'layers', diff_ids: diffs },
      }),
    );
    const manifest = json({
      schemaVersion: 2,
      mediaType: `${OCI}.manifest.v1+json`,
      config,
      layers,
    });
    manifests.push({ ...add(`${OCI}.manifest.v1+json`, manifest), platform: place });
  }
  const index = add(
    `${OCI}.index.v1+json`,
    json({ schemaVersion: 2, mediaType: `${OCI}.index.v1+json`, manifests }),
  );
  const annotations = {
    'org.opencontainers.image.ref.name': version,
    'io.containerd.image.name': `refit.dev/refit:${version}`,
  };
  const files: [string, Buffer][] = [
    ['oci-layout', json({ imageLayoutVersion: '1.0.0' })],
    ['index.json', json({ schemaVersion: 2, manifests: [{ ...index, annotations }] })],
    ...blobs,
  ];
  const folders = ['blobs/', 'blobs/sha256/'].map((path) => ({ path, mode: 0o755 }));
  return tar(
    [...folders, ...files.map(([path, content]) => ({ path, mode: 0o644, content }))],
    time,
  );
}

function settings(version: string): object {
  return {
    User: `${USER}:${USER}`,
    Env: ['PATH=/usr/bin', 'SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt'],
    Entrypoint: ['/usr/bin/refit'],
    WorkingDir: '/',
    Labels: {
      'org.opencontainers.image.title': 'refit',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
    },
  };
}

/** Returns the base of the image. It has no shell and no package manager, and the user can write only to /tmp. */
function baseEntries({ entries }: Libraries): TarEntry[] {
  const file = (path: string, text: string): TarEntry => ({
    path,
    mode: 0o644,
    content: Buffer.from(text),
  });
  const own: TarEntry[] = [
    { path: 'bin', mode: 0o777, link: 'usr/bin' },
    { path: 'lib', mode: 0o777, link: 'usr/lib' },
    { path: 'lib64', mode: 0o777, link: 'usr/lib64' },
    { path: 'tmp/', mode: 0o1777 },
    { path: 'usr/lib64/', mode: 0o755 },
    file('etc/group', `root:x:0:\nnonroot:x:${USER}:\n`),
    file('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
    file('etc/passwd', `root:x:0:0:root:/:/none\nnonroot:x:${USER}:${USER}:nonroot:/tmp:/none\n`),
    file('etc/ssl/certs/ca-certificates.crt', `${rootCertificates.join('\n')}\n`),
  ];
  return [...own, ...entries];
}

function programEntries(binary: Buffer): TarEntry[] {
  return [
    { path: 'usr/bin/refit', mode: 0o755, content: binary },
    // The command that the Deployment of the original controller runs.
    { path: 'usr/bin/system-upgrade-controller', mode: 0o777, link: 'refit' },
  ];
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

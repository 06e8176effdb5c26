/** Makes the images whose names kubeadm prints, from the programs that were built. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { must } from '../../../../tools/release/commands.ts';
import { type ImageParts, writeImage } from '../../machines/images.ts';
import type { Etcd } from '../parts/programs.ts';

/** A registry from which no image can be pulled. */
export const REPOSITORY = 'images.refit.internal';

export interface ImageSources {
  /** The folder for the archives. An archive that is already there is not made again. */
  readonly archives: string;
  readonly versions: readonly string[];
  /**
   * The folder that contains a folder with the programs of each version, and a folder with Debian's packages. The
   * members below have the paths of single files.
   */
  readonly parts: string;
  /** The etcd of each version. */
  readonly etcds: Readonly<Record<string, Etcd>>;
  readonly standIn: string;
}

/** Returns the names of the images of a version, as the kubeadm of this version prints them. */
export async function imageNames(parts: string, version: string): Promise<string[]> {
  const list = [
    'config',
    'images',
    'list',
    '--image-repository',
    REPOSITORY,
    '--kubernetes-version',
    version,
  ];
  return (await must(join(parts, version, 'kubeadm'), list)).trim().split('\n');
}

/** Makes the archive of each image of each version, unless the archive is already there. */
export async function makeImages(sources: ImageSources): Promise<void> {
  const { archives, versions, parts } = sources;
  await mkdir(archives, { recursive: true });
  for (const version of versions) {
    for (const name of await imageNames(parts, version)) {
      const archive = join(archives, archiveOf(name));
      if (existsSync(archive)) continue;
      const directory = await mkdtemp(join(archives, 'making-'));
      await writeImage(archive, directory, { name, ...(await contentOf(name, version, sources)) });
    }
  }
}

/** `images.refit.internal/etcd:3.6.8-0` is in `etcd_3.6.8-0.tar`. */
export const archiveOf = (name: string): string =>
  `${name.slice(REPOSITORY.length + 1).replace(':', '_')}.tar`;

async function contentOf(
  name: string,
  version: string,
  sources: ImageSources,
): Promise<Omit<ImageParts, 'name'>> {
  const { parts, etcds, standIn } = sources;
  const component = name.slice(REPOSITORY.length + 1).split(':')[0] ?? '';
  switch (component) {
    case 'pause':
      return { files: { pause: standIn }, entrypoint: ['/pause'] };
    case 'coredns':
      return { files: { coredns: standIn }, entrypoint: ['/coredns'] };
    case 'etcd': {
      const { server = '', etcdctl = '' } = etcds[version] ?? {};
      return { files: { 'usr/local/bin/etcd': server, 'usr/local/bin/etcdctl': etcdctl } };
    }
    case 'kube-proxy':
      return await kubeProxy(parts, version);
    default:
      return { files: { [`usr/local/bin/${component}`]: join(parts, version, component) } };
  }
}

/** Returns the content of the kube-proxy image. The image includes iptables. */
async function kubeProxy(parts: string, version: string): Promise<Omit<ImageParts, 'name'>> {
  const debian = join(parts, 'debian');
  const [triplet = ''] = (await readdir(join(debian, 'usr/lib'))).filter((name) =>
    name.includes('-linux-gnu'),
  );
  const own = join(debian, 'usr/lib', triplet);
  // A Service with several endpoints needs this match, whose library needs the system's library for mathematics.
  const ldd = await must('ldd', ['/bin/sh', join(own, 'xtables/libxt_statistic.so')]);
  const system = [...ldd.matchAll(/^\t(?:.* => )?(\/\S+)/gm)].flatMap(([, path]) => path ?? []);
  const tables = ['', '-save', '-restore'].flatMap((end) => [`iptables${end}`, `ip6tables${end}`]);
  return {
    files: {
      'usr/local/bin/kube-proxy': join(parts, version, 'kube-proxy'),
      'usr/sbin/xtables-nft-multi': join(debian, 'usr/sbin/xtables-nft-multi'),
      ...Object.fromEntries(system.map((path) => [path, path])),
    },
    folders: { 'opt/libraries': own },
    links: Object.fromEntries(tables.map((name) => [`usr/sbin/${name}`, 'xtables-nft-multi'])),
    environment: ['LD_LIBRARY_PATH=/opt/libraries', 'XTABLES_LIBDIR=/opt/libraries/xtables'],
  };
}

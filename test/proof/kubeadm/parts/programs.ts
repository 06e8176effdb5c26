/**
 * Builds the programs of the machines from the Go module proxy, into the same cache that the control plane of the tests
 * uses.
 */
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type BuildOptions,
  ensureBuilt,
  ensureComponents,
} from '../../../../tools/controlplane/build.ts';
import {
  etcdProgram,
  kubernetesProgram,
  RECIPES,
} from '../../../../tools/controlplane/components.ts';
import { releaseOf } from '../../../../tools/controlplane/releases.ts';
import { must } from '../../../../tools/release/commands.ts';
import { CONTAINERD, containerdRecipe, RUNTIME } from '../../machines/containerd.ts';
import { buildGoFile } from '../../machines/go-file.ts';

const HERE = import.meta.dirname;

export const FROM = 'v1.36.2';
export const TO = 'v1.36.3';
/** The earlier versions for the parts that upgrade over several minor versions. */
export const EARLIER = ['v1.34.4', 'v1.35.4'] as const;
/** The release for the part that goes from `TO` to the next minor version. Its kubeadm installs another etcd. */
const NEXT = releaseOf('v1.37', 'NEXT');
export const NEXT_MINOR = NEXT.kubernetes;

const PROGRAMS = [
  'kubeadm',
  'kubelet',
  'kubectl',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kube-proxy',
] as const;
export interface Etcd {
  readonly version: string;
  readonly server: string;
  readonly etcdctl: string;
}

export interface Programs {
  /** The etcd of each version of Kubernetes. */
  readonly etcds: Readonly<Record<string, Etcd>>;
  /** The path of a program that only waits, and answers the probes of CoreDNS. */
  readonly standIn: string;
}

/** The etcd that the machines with a version of Kubernetes run, and the folders of its manifests below `tools/`. */
function etcdFor(version: string) {
  return version === NEXT_MINOR
    ? { version: NEXT.etcd, server: NEXT.modules.etcd, etcdctl: NEXT.modules.etcd }
    : { version: RECIPES.etcd.version, server: RECIPES.etcd.module, etcdctl: 'proof/etcdctl' };
}

/** Builds the etcd of a version of Kubernetes, and the etcdctl of the same release. */
async function gatherEtcd(kubernetes: string, options: BuildOptions): Promise<Etcd> {
  const { version, ...modules } = etcdFor(kubernetes);
  const [server = '', etcdctl = ''] = await ensureBuilt(
    [
      ['etcd', etcdProgram('server', modules.server, version)],
      ['etcdctl', etcdProgram('etcdctl', modules.etcdctl, version)],
    ],
    options,
  );
  return { version, server, etcdctl };
}

/**
 * Makes folders below `parts`: the folder `bin`, and one folder for each version of Kubernetes, with the version as its
 * name.
 */
export async function gatherPrograms(
  parts: string,
  versions: readonly string[],
  options: BuildOptions,
): Promise<Programs> {
  // Without this the build could use programs of another version.
  const own = {
    ...options,
    environment: { ...options.environment, KUBEBUILDER_ASSETS: undefined },
  };
  const etcds: Record<string, Etcd> = {};
  for (const version of versions) {
    const module = version === NEXT_MINOR ? NEXT.modules.kubernetes : `proof/${version}`;
    const recipes = PROGRAMS.map(
      (name) => [name, kubernetesProgram(name, module, version)] as const,
    );
    etcds[version] = await gatherEtcd(version, own);
    await linkAll(join(parts, version), PROGRAMS, await ensureBuilt(recipes, own));
  }
  await mkdir(join(parts, 'bin'), { recursive: true });
  // These programs run on the machines, which have access only to `parts`.
  for (const [module, version] of [
    ['proof/containerd', CONTAINERD.from],
    ['proof/containerd-next', CONTAINERD.to],
  ] as const) {
    const recipes = RUNTIME.map((name) => [name, containerdRecipe(name, module, version)] as const);
    await mkdir(join(parts, 'containerd', version), { recursive: true });
    await must('cp', [...(await ensureBuilt(recipes, own)), join(parts, 'containerd', version)]);
  }
  const { etcdutl } = await ensureComponents(['etcdutl'], own);
  await must('cp', [etcdutl, join(parts, 'bin', 'etcdutl')]);
  const standIn = join(parts, 'bin', 'stand-in');
  await buildGoFile(join(HERE, '../../machines/stand-in.go'), standIn, own);
  const killer = join(parts, 'bin', 'kill-at-rename');
  await buildGoFile(join(HERE, '../faults/kill-at-rename.go'), killer, own);
  return { etcds, standIn };
}

async function linkAll(
  directory: string,
  names: readonly string[],
  paths: readonly string[],
): Promise<void> {
  await mkdir(directory);
  for (const [index, name] of names.entries())
    await symlink(paths[index] ?? '', join(directory, name));
}

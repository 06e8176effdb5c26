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
  kubernetesProgram,
  RECIPES,
  type Recipe,
} from '../../../../tools/controlplane/components.ts';
import { must } from '../../../../tools/release/commands.ts';
import { CONTAINERD, containerdRecipe, RUNTIME } from '../../machines/containerd.ts';
import { buildGoFile } from '../../machines/go-file.ts';

const HERE = import.meta.dirname;

export const FROM = 'v1.36.2';
export const TO = 'v1.36.3';
/** The earlier versions for the parts that upgrade over several minor versions. */
export const EARLIER = ['v1.34.4', 'v1.35.4'] as const;

const PROGRAMS = [
  'kubeadm',
  'kubelet',
  'kubectl',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kube-proxy',
] as const;
/** Builds etcdctl from the same release as the etcd of the tests. */
const ETCDCTL: Recipe = {
  ...RECIPES.etcd,
  module: 'proof/etcdctl',
  package: 'go.etcd.io/etcd/etcdctl/v3',
};

export interface Programs {
  readonly etcd: string;
  readonly etcdctl: string;
  /** The path of a program that only waits, and answers the probes of CoreDNS. */
  readonly standIn: string;
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
  for (const version of versions) {
    const recipes = PROGRAMS.map(
      (name) => [name, kubernetesProgram(name, `proof/${version}`, version)] as const,
    );
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
  const { etcd, etcdutl } = await ensureComponents(['etcd', 'etcdutl'], own);
  const [etcdctl = ''] = await ensureBuilt([['etcdctl', ETCDCTL]], own);
  await must('cp', [etcdutl, join(parts, 'bin', 'etcdutl')]);
  const standIn = join(parts, 'bin', 'stand-in');
  await buildGoFile(join(HERE, '../../machines/stand-in.go'), standIn, own);
  const killer = join(parts, 'bin', 'kill-at-rename');
  await buildGoFile(join(HERE, '../faults/kill-at-rename.go'), killer, own);
  return { etcd, etcdctl, standIn };
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

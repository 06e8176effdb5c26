/** Builds Cluster API's managers from the Go module proxy, into the cache of the tests' control plane, and finds their definitions. */
import { join } from 'node:path';
import { type BuildOptions, cacheDirectory, ensureBuilt } from '../../../../tools/controlplane/build.ts';
import type { Recipe } from '../../../../tools/controlplane/components.ts';
import { run } from '../../../../tools/controlplane/run.ts';
import { findToolchain } from '../../../../tools/controlplane/toolchain.ts';
import { must } from '../../../../tools/release/commands.ts';

export const CLUSTER_API = 'v1.14.0';

const MODULE = 'proof/cluster-api';
const MANIFEST = join(import.meta.dirname, '../../../../tools', MODULE);
const STAMP = 'sigs.k8s.io/cluster-api/version';
const [MAJOR, MINOR] = CLUSTER_API.slice(1).split('.');
const FLAGS = `-s -w -X ${STAMP}.gitVersion=${CLUSTER_API} -X ${STAMP}.gitMajor=${MAJOR} -X ${STAMP}.gitMinor=${MINOR}`;

/** By the name of each manager: its Go module, and its package in there. */
const MANAGERS = {
  core: ['sigs.k8s.io/cluster-api', 'core'],
  bootstrap: ['sigs.k8s.io/cluster-api', 'bootstrap/kubeadm'],
  'control-plane': ['sigs.k8s.io/cluster-api', 'controlplane/kubeadm'],
  infrastructure: ['sigs.k8s.io/cluster-api/test', 'infrastructure/docker'],
} as const;

export type ManagerName = keyof typeof MANAGERS;

export interface Program {
  readonly name: ManagerName;
  readonly path: string;
  /** The folder of its source with definitions and webhooks. */
  readonly config: string;
}

export async function gatherManagers(options: BuildOptions): Promise<Program[]> {
  const managers = Object.entries(MANAGERS).map(([name, [module, path]]) => ({
    name: name as ManagerName,
    module,
    path,
  }));
  const recipes = managers.map(({ name, module, path }) => [`cluster-api-${name}`, recipeFor(module, path)] as const);
  const own = { ...options, environment: { ...options.environment, KUBEBUILDER_ASSETS: undefined } };
  const binaries = await ensureBuilt(recipes, own);
  const sources = await sourcesOf([...new Set(managers.map(({ module }) => module))], own);
  return managers.map(({ name, module, path }, index) => ({
    name,
    path: binaries[index] ?? '',
    config: join(sources.get(module) ?? '', path, 'config'),
  }));
}

function recipeFor(module: string, path: string): Recipe {
  return { module: MODULE, package: `${module}/${path}`, version: CLUSTER_API, flags: ['-ldflags', FLAGS] };
}

/** Go's folder of each module, which is downloaded where it is not there. */
async function sourcesOf(
  modules: readonly string[],
  { environment, log, abort }: BuildOptions,
): Promise<Map<string, string>> {
  const toolchain = await findToolchain({ cache: cacheDirectory(environment), run, log, abort });
  const how = { cwd: MANIFEST, environment: { ...toolchain.environment, GOWORK: 'off' }, abort };
  await must(toolchain.go, ['mod', 'download', ...modules], how);
  const folders = await must(toolchain.go, ['list', '-m', '-f', '{{.Dir}}', ...modules], how);
  return new Map(
    folders
      .trim()
      .split('\n')
      .map((folder, index) => [modules[index] ?? '', folder]),
  );
}

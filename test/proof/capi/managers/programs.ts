/** Builds Cluster API's managers from the Go module proxy, into the cache of the tests' control plane, and finds their definitions. */
import { join } from 'node:path';
import {
  type BuildOptions,
  cacheDirectory,
  ensureBuilt,
} from '../../../../tools/controlplane/build.ts';
import type { Recipe } from '../../../../tools/controlplane/components.ts';
import { run } from '../../../../tools/controlplane/run.ts';
import { findToolchain } from '../../../../tools/controlplane/toolchain.ts';
import { must } from '../../../../tools/release/commands.ts';

const TOOLS = join(import.meta.dirname, '../../../../tools');

/** The releases by their minor version. `core` is the folder of the core manager in its module. */
export const RELEASES = {
  '1.14': { version: 'v1.14.2', core: 'core' },
  '1.13': { version: 'v1.13.4', core: '' },
  '1.12': { version: 'v1.12.5', core: '' },
} as const;

export type Minor = keyof typeof RELEASES;

const STAMP = 'sigs.k8s.io/cluster-api/version';

/** The Go module of each manager except core, and the package in that module. */
const MANAGERS = {
  bootstrap: ['sigs.k8s.io/cluster-api', 'bootstrap/kubeadm'],
  'control-plane': ['sigs.k8s.io/cluster-api', 'controlplane/kubeadm'],
  infrastructure: ['sigs.k8s.io/cluster-api/test', 'infrastructure/docker'],
} as const;

export type ManagerName = 'core' | keyof typeof MANAGERS;

export interface Program {
  readonly name: ManagerName;
  readonly path: string;
  /** The folder of the manager's source that has the definitions and webhooks. */
  readonly config: string;
}

export async function gatherManagers(minor: Minor, options: BuildOptions): Promise<Program[]> {
  const { core } = RELEASES[minor];
  const named = { core: ['sigs.k8s.io/cluster-api', core], ...MANAGERS } as const;
  const managers = Object.entries(named).map(([name, [module, path]]) => ({
    name: name as ManagerName,
    module,
    path,
  }));
  const recipes = managers.map(
    ({ name, module, path }) =>
      [`cluster-api-${name}`, recipeFor(minor, join(module, path))] as const,
  );
  const own = {
    ...options,
    environment: { ...options.environment, KUBEBUILDER_ASSETS: undefined },
  };
  const binaries = await ensureBuilt(recipes, own);
  const sources = await sourcesOf(
    manifestOf(minor),
    [...new Set(managers.map(({ module }) => module))],
    own,
  );
  return managers.map(({ name, module, path }, index) => ({
    name,
    path: binaries[index] ?? '',
    config: join(sources.get(module) ?? '', path, 'config'),
  }));
}

function manifestOf(minor: Minor): string {
  return `proof/cluster-api-${minor}`;
}

function recipeFor(minor: Minor, path: string): Recipe {
  const { version } = RELEASES[minor];
  const [major = '', second = ''] = minor.split('.');
  const stamps = Object.entries({ gitVersion: version, gitMajor: major, gitMinor: second });
  const flags = ['-s', '-w', ...stamps.map(([name, value]) => `-X ${STAMP}.${name}=${value}`)].join(
    ' ',
  );
  return { module: manifestOf(minor), package: path, version, flags: ['-ldflags', flags] };
}

/** Returns the folder in which Go keeps each module. Downloads the modules that are missing. */
export async function sourcesOf(
  manifest: string,
  modules: readonly string[],
  { environment, log, abort }: BuildOptions,
): Promise<Map<string, string>> {
  const toolchain = await findToolchain({ cache: cacheDirectory(environment), run, log, abort });
  const cwd = join(TOOLS, manifest);
  const how = { cwd, environment: { ...toolchain.environment, GOWORK: 'off' }, abort };
  await must(toolchain.go, ['mod', 'download', ...modules], how);
  const folders = await must(toolchain.go, ['list', '-m', '-f', '{{.Dir}}', ...modules], how);
  return new Map(
    folders
      .trim()
      .split('\n')
      .map((folder, index) => [modules[index] ?? '', folder]),
  );
}

export interface HookTypes {
  readonly hooks: string;
  readonly definitions: string;
}

/** Returns the folder of the Go types of the hooks, and the folder of core's definitions. */
export async function hookTypesOf(minor: Minor, options: BuildOptions): Promise<HookTypes> {
  // Since 1.14 the types are a module of their own.
  const isOwn = minor === '1.14';
  const api = isOwn ? 'sigs.k8s.io/cluster-api/api' : 'sigs.k8s.io/cluster-api';
  const sources = await sourcesOf(manifestOf(minor), [api, 'sigs.k8s.io/cluster-api'], options);
  return {
    hooks: join(sources.get(api) ?? '', isOwn ? '' : 'api', 'runtime/hooks/v1alpha1'),
    definitions: join(
      sources.get('sigs.k8s.io/cluster-api') ?? '',
      RELEASES[minor].core,
      'config/crd/bases',
    ),
  };
}

/** Reads the facts of a minor version of Kubernetes from its sources: builds a small program for each component, and asks it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';
import {
  COMPONENTS,
  type Component,
  type FeatureGate,
  type Lifecycle,
} from '../../src/versions/minor-facts.ts';
import { type BuildOptions, cacheDirectory, ensureBuilt } from '../controlplane/build.ts';
import { kubernetesProgram, type Recipe } from '../controlplane/components.ts';
import { lastLines, run } from '../controlplane/run.ts';
import { findToolchain } from '../controlplane/toolchain.ts';
import { moduleOf, TOOLS } from './minors.ts';

/** What the program of a component prints. */
interface Printed<More> {
  readonly flags?: readonly string[];
  readonly gates: Readonly<Record<string, FeatureGate>>;
  readonly more?: More;
}

interface PrintedLifecycle extends Lifecycle {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

interface PrintedKubeadm {
  readonly etcd: string;
  readonly externalEtcd: string;
  readonly formats: readonly string[];
  readonly kernels: readonly string[];
}

/** The answer of `/apis` in the sources, with all alpha and beta APIs on. */
interface Discovery {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly versions: readonly {
      readonly version: string;
      readonly resources: readonly {
        readonly responseKind: { readonly kind: string };
        readonly verbs: readonly string[];
      }[];
    }[];
  }[];
}

export interface SourceFacts {
  readonly components: Readonly<Record<Component, Printed<unknown>>>;
  readonly lifecycles: readonly PrintedLifecycle[];
  readonly kubeadm: Printed<PrintedKubeadm>;
  readonly discovery: Discovery;
}

/** Resolves with what the sources of the minor version say. Throws REFIT_TESTENV if a program cannot be built. */
export async function readSources(minor: number, options: BuildOptions): Promise<SourceFacts> {
  const { module, release } = moduleOf(minor);
  const programs = [...COMPONENTS, 'kubeadm'] as const;
  const paths = await ensureBuilt(
    programs.map((name) => [`facts-of-${name}`, recipe(name, module, release)]),
    options,
  );
  const printed = await Promise.all(paths.map(async (path) => await printedBy(path, options)));
  const by = Object.fromEntries(programs.map((name, index) => [name, printed[index]])) as Record<
    Component | 'kubeadm',
    Printed<unknown>
  >;
  return {
    components: by,
    lifecycles: by['kube-apiserver'].more as PrintedLifecycle[],
    kubeadm: by.kubeadm as Printed<PrintedKubeadm>,
    discovery: await discoveryOf(module, options),
  };
}

function recipe(name: string, module: string, release: string): Recipe {
  const { flags } = kubernetesProgram(name, module, release);
  const [, tags, ...others] = flags;
  const withComponent = `${tags},${name.replaceAll('-', '_')}`;
  return {
    module,
    version: release,
    package: './facts',
    program: 'facts/program',
    flags: ['-tags', withComponent, ...others],
  };
}

async function printedBy(path: string, { abort }: BuildOptions): Promise<Printed<unknown>> {
  return JSON.parse(await outputOf(path, [], { abort })) as Printed<unknown>;
}

async function discoveryOf(module: string, options: BuildOptions): Promise<Discovery> {
  const { log, abort } = options;
  const cache = cacheDirectory(options.environment);
  const { go, environment } = await findToolchain({ cache, run, log, abort });
  const args = ['list', '-m', '-f', '{{.Dir}}', 'k8s.io/kubernetes'];
  const cwd = join(TOOLS, module);
  const folder = await outputOf(go, args, { cwd, abort, environment });
  const file = join(folder.trim(), 'api', 'discovery', 'aggregated_v2.json');
  return JSON.parse(await readFile(file, 'utf8')) as Discovery;
}

async function outputOf(
  command: string,
  args: readonly string[],
  options: Parameters<typeof run>[2],
): Promise<string> {
  const { ok, stdout, stderr } = await run(command, args, options);
  if (ok) return stdout;
  throw new RefitError('REFIT_TESTENV', `${command} failed: ${lastLines(stderr)}`);
}

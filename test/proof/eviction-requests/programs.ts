/** Builds programs of the version of Kubernetes whose controllers carry out EvictionRequests. */
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { RefitError } from '../../../src/util/errors.ts';
import { cacheDirectory } from '../../../tools/controlplane/build.ts';
import { kubernetesProgram } from '../../../tools/controlplane/components.ts';
import { lastLines, run } from '../../../tools/controlplane/run.ts';

export const VERSION = 'v1.38.0-beta.0';
/** Go downloads this toolchain from the module proxy. */
const TOOLCHAIN = 'go1.27.4';
const MANIFEST = join(import.meta.dirname, '..', '..', '..', 'tools', 'proof', VERSION);

/** Programs of Kubernetes, and one that runs only the two controllers that carry out EvictionRequests. */
export type Program = 'kube-apiserver' | 'kube-controller-manager' | 'eviction-controllers';

/**
 * The module proxy does not have `k8s.io/apiextensions-api` of this version. In the previous pre-release, the packages
 * of `k8s.io/apiextensions-api` were part of this module, so the build takes them from this module. The packages
 * contain only the types and clients of CustomResourceDefinitions.
 */
const DONOR = 'k8s.io/apiextensions-apiserver';
const DONOR_VERSION = 'v0.38.0-alpha.2';
const SPLIT_OFF = 'k8s.io/apiextensions-api';
const PACKAGES = ['pkg/apis/apiextensions/v1', 'pkg/apis/apiextensions/v1beta1', 'pkg/client'];

export interface BuildOptions {
  readonly log: (line: string) => void;
  readonly abort: AbortSignal;
}

/** Returns the folder of the programs. The first call takes many minutes. */
export async function buildPrograms(
  wanted: readonly Program[],
  options: BuildOptions,
): Promise<string> {
  const folder = join(cacheDirectory(process.env), `kubernetes-${VERSION}`);
  const programs = join(folder, 'bin');
  const missing = wanted.filter((name) => !existsSync(join(programs, name)));
  if (missing.length === 0) return programs;
  await mkdir(folder, { recursive: true });
  for (const file of ['go.mod', 'go.sum']) await copyFile(join(MANIFEST, file), join(folder, file));
  await cp(join(MANIFEST, 'controllers'), join(folder, 'controllers'), { recursive: true });
  await standInFor('k8s.io/ktesting', join(folder, 'ktesting'));
  await splitOff(folder, options);
  for (const name of missing) {
    options.log(`building ${name} ${VERSION} into ${programs}`);
    const { flags, package: path } = kubernetesProgram(name, MANIFEST, VERSION);
    const source = name === 'eviction-controllers' ? './controllers' : path;
    const output = ['-o', join(programs, name)];
    const args = ['build', '-buildvcs=false', '-trimpath', ...flags, ...output, source];
    await go(args, folder, options);
  }
  return programs;
}

/** Makes a module of the packages that were moved out of another module. */
async function splitOff(folder: string, options: BuildOptions): Promise<void> {
  const module = join(folder, 'apiextensions-api');
  await rm(module, { recursive: true, force: true });
  await standInFor(SPLIT_OFF, module);
  const text = await go(['mod', 'download', '-json', `${DONOR}@${DONOR_VERSION}`], folder, options);
  const donor = (JSON.parse(text) as { Dir: string }).Dir;
  const isCopied = (path: string): boolean => !/(_test|conversion)\.go$|clientset_test/.test(path);
  for (const each of PACKAGES) {
    const filter = async (source: string, target: string): Promise<boolean> => {
      if (!isCopied(relative(donor, source))) return false;
      if (!source.endsWith('.go')) return true;
      await writeFile(
        target,
        (await readFile(source, 'utf8')).replaceAll(`${DONOR}/`, `${SPLIT_OFF}/`),
      );
      return false;
    };
    await cp(join(donor, each), join(module, each), { recursive: true, filter });
  }
}

/** Makes a module without packages, because a module graph needs a manifest of each module. */
async function standInFor(name: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'go.mod'), `module ${name}\n\ngo 1.27.0\n`);
}

async function go(args: string[], cwd: string, { abort }: BuildOptions): Promise<string> {
  const environment = {
    GOTOOLCHAIN: TOOLCHAIN,
    GOFLAGS: '-mod=mod',
    CGO_ENABLED: '0',
    GOWORK: 'off',
  };
  const { ok, stdout, stderr } = await run('go', args, { cwd, environment, abort });
  if (!ok)
    throw new RefitError('REFIT_TESTENV', `go ${args[0]} failed: ${lastLines(stderr || stdout)}`);
  return stdout;
}

/** Definitions that make an earlier API server serve the kinds. */
export async function readKinds(): Promise<string> {
  return await readFile(join(MANIFEST, 'kinds.yaml'), 'utf8');
}

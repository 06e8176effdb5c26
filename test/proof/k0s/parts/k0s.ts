/** Builds executables of k0s with everything that a release carries. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildOptions, cacheDirectory } from '../../../../tools/controlplane/build.ts';
import { RECIPES } from '../../../../tools/controlplane/components.ts';
import { run } from '../../../../tools/controlplane/run.ts';
import { findToolchain, GO_VERSION } from '../../../../tools/controlplane/toolchain.ts';
import { cacheFolder, must } from '../../../../tools/release/commands.ts';
import { buildGoFile } from '../../machines/go-file.ts';
import type { Source } from './source.ts';

/** The etcd that the payload has. */
const ETCD_VERSION = RECIPES.etcd.version;
const STAMPS = 'github.com/k0sproject/k0s/pkg/build';
const KUBERNETES = 'k8s.io/component-base/version';
const ETCD_MODULES = ['api', 'client', 'client/pkg', 'etcdutl', 'pkg', 'server'];

/**
 * Returns the path of an executable that says that it is `version`. Executables of one source with different versions
 * differ only in this string.
 */
export async function buildK0s(
  source: Source,
  payload: readonly string[],
  version: string,
  options: BuildOptions,
): Promise<string> {
  const key = createHash('sha256')
    .update([source.commit, version, GO_VERSION, process.arch, ...payload].join('\n'))
    .digest('hex');
  const kept = join(await cacheFolder('proof'), `k0s-${version}-${key.slice(0, 16)}`);
  const executable = join(kept, 'k0s');
  if (existsSync(executable)) return executable;
  options.log(`building k0s ${version} (about five minutes for the first one of a source)`);
  const started = options.now();
  const staging = await mkdtemp(`${kept}-`);
  try {
    const bare = join(staging, 'bare');
    await compile(source, version, staging, bare, options);
    const append = join(staging, 'payload');
    await buildGoFile(join(import.meta.dirname, 'payload.go'), append, options);
    await must(append, [bare, join(staging, 'k0s'), ...payload], { abort: options.abort });
    await rm(bare);
    await rename(staging, kept);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    throw error;
  }
  options.log(`built k0s ${version} in ${Math.round((options.now() - started) / 1000)} s`);
  return executable;
}

/** Compiles k0s as its Makefile does, except that it needs no container engine. */
async function compile(
  source: Source,
  version: string,
  staging: string,
  output: string,
  { environment, log, abort }: BuildOptions,
): Promise<void> {
  const toolchain = await findToolchain({ cache: cacheDirectory(environment), run, log, abort });
  const call = async (...args: string[]): Promise<string> =>
    await must(toolchain.go, args, {
      cwd: source.directory,
      environment: { ...toolchain.environment, CGO_ENABLED: '0', GOWORK: 'off' },
      abort,
    });
  // Both versions have the libraries of the etcd that they carry here, because a mirror of Go's modules may not have
  // every older release of etcd any more.
  const manifest = join(staging, 'go.mod');
  for (const name of ['go.mod', 'go.sum'])
    await copyFile(join(source.directory, name), join(staging, name));
  const modules = ETCD_MODULES.map((name) => `-require=go.etcd.io/etcd/${name}/v3@${ETCD_VERSION}`);
  await call('mod', 'edit', ...modules, manifest);
  const [major = '', minor = ''] = source.kubernetes.split('.');
  const values = {
    [`${STAMPS}.Version`]: version,
    [`${STAMPS}.KubernetesVersion`]: source.kubernetes,
    [`${STAMPS}.EtcdVersion`]: ETCD_VERSION.slice(1),
    [`${STAMPS}.ContainerdVersion`]: source.containerd,
    [`${KUBERNETES}.gitVersion`]: `v${source.kubernetes}`,
    [`${KUBERNETES}.gitMajor`]: major,
    [`${KUBERNETES}.gitMinor`]: minor,
    'github.com/containerd/containerd/v2/version.Version': source.containerd,
  };
  const flags = [
    '-s',
    '-w',
    ...Object.entries(values).map(([name, value]) => `-X ${name}=${value}`),
  ];
  const modfile = ['-mod=mod', `-modfile=${manifest}`];
  const common = ['-buildvcs=false', '-trimpath', ...modfile, '-ldflags', flags.join(' ')];
  await call('build', ...common, '-o', output, 'main.go');
  for (const name of ['go.mod', 'go.sum']) await rm(join(staging, name));
}

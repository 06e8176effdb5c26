/** Builds the original controller and its own test suite from a git repository, into a cache outside the tree. */
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildOptions, cacheDirectory } from '../../../tools/controlplane/build.ts';
import { withLock } from '../../../tools/controlplane/lock.ts';
import { run } from '../../../tools/controlplane/run.ts';
import { findToolchain, GO_VERSION } from '../../../tools/controlplane/toolchain.ts';
import { cacheFolder, must } from '../../../tools/release/commands.ts';
import { commitIn, gitIn } from '../repositories.ts';

const PROJECT = 'rancher/system-upgrade-controller';
const MODULE = `github.com/${PROJECT}`;

/** The newest version with which Refit is compared. */
export const ORIGINAL_VERSION = 'v0.20.1';

export interface Original {
  /** The program of the controller. */
  readonly controller: string;
  /** The program of its own test suite. */
  readonly suite: string;
  /** The folder with the manifests from which people install it. */
  readonly manifests: string;
}

/** Resolves with the commit of a tag. Rejects with REFIT_USAGE if the repository lacks the tag, or is another one. */
export async function commitOfOriginal(repository: string, version: string): Promise<string> {
  const wanted = { project: PROJECT, revision: version, file: 'e2e/suite' };
  return await commitIn({ option: '--source', repository, ...wanted });
}

/** `source` is a git repository of the original, with or without a work tree. `version` is one of its tags. */
export async function gatherOriginal(
  source: string,
  version: string,
  options: BuildOptions,
): Promise<Original> {
  const commit = await commitOfOriginal(source, version);
  const folder = await cacheFolder('system-upgrade-controller');
  const key = [version, commit.slice(0, 12), process.arch, `go${GO_VERSION}`].join('-');
  const kept = join(folder, key);
  const onWait = (): void => options.log('another process is building the original; waiting');
  await withLock(kept, { onWait, abort: options.abort }, async () => {
    if (!existsSync(kept)) await build(source, version, commit, kept, options);
  });
  return {
    controller: join(kept, 'system-upgrade-controller'),
    suite: join(kept, 'suite'),
    manifests: join(kept, 'manifests'),
  };
}

async function build(
  source: string,
  version: string,
  commit: string,
  kept: string,
  options: BuildOptions,
): Promise<void> {
  const { environment, log, now, abort } = options;
  const toolchain = await findToolchain({ cache: cacheDirectory(environment), run, log, abort });
  const staging = await mkdtemp(`${kept}-`);
  try {
    const tree = join(staging, 'source');
    await mkdir(tree);
    const archive = join(staging, 'source.tar');
    await must('git', [...gitIn(source), 'archive', '--output', archive, commit], { abort });
    await must('tar', ['-xf', archive, '-C', tree], { abort });
    const built = join(staging, 'built');
    await mkdir(built);
    const stamp = `-s -w -X ${MODULE}/pkg/version.Version=${version} -X ${MODULE}/pkg/version.GitCommit=${commit}`;
    const flags = ['-buildvcs=false', '-trimpath', '-gcflags=all=-dwarf=false', '-ldflags', stamp];
    const go = async (name: string, words: readonly string[], path: string): Promise<void> => {
      log(`building ${name} ${version} (some minutes, once)`);
      const started = now();
      await must(toolchain.go, [...words, ...flags, '-o', join(built, name), path], {
        cwd: tree,
        environment: { ...toolchain.environment, CGO_ENABLED: '0', GOWORK: 'off' },
        abort,
      });
      log(`built ${name} in ${Math.round((now() - started) / 1000)} s`);
    };
    await go('system-upgrade-controller', ['build'], '.');
    await go('suite', ['test', '-c'], './e2e/suite');
    await cp(join(tree, 'manifests'), join(built, 'manifests'), { recursive: true });
    await rename(built, kept);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

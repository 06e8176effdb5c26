/** The releases of k0s that the scenes install. */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf, RefitError } from '../../../../src/util/errors.ts';
import type { BuildOptions } from '../../../../tools/controlplane/build.ts';
import { run } from '../../../../tools/controlplane/run.ts';
import { cacheFolder } from '../../../../tools/release/commands.ts';
import type { Release, SceneName } from '../options.ts';
import { buildK0s } from './k0s.ts';
import { gatherPayload } from './programs.ts';
import { unpackSource } from './source.ts';

/** The tags of k0s that are built: two releases with different code, each with its own version of Kubernetes. */
export const FROM = 'v1.36.2+k0s.0';
export const TO = 'v1.36.3+k0s.2';
/** The code of `TO` under further versions. */
const LATER = ['v1.36.3+k0s.3', 'v1.36.3+k0s.4', 'v1.36.3+k0s.5', 'v1.36.3+k0s.6', 'v1.36.3+k0s.7'];
const WITHOUT_KUBELET = 'v1.36.3+k0s.8';
const WITHOUT_MANAGER = 'v1.36.3+k0s.9';

export interface Releases {
  readonly from: Release;
  readonly to: Release;
  readonly later: readonly Release[];
  readonly withoutKubelet?: Release;
  readonly withoutManager?: Release;
}

/** The scenes that need more releases than the two that are compared. */
export const NEED_SOURCE: readonly SceneName[] = [
  'faults',
  'back',
  'updates',
  'long',
  'recordings',
];

/** Returns two executables that the user has, under the versions that they print. Throws REFIT_USAGE if they are not k0s. */
export async function givenReleases(old: string, newer: string): Promise<Releases> {
  const from = await givenRelease(old);
  const to = await givenRelease(newer);
  if (from.version === to.version)
    throw new RefitError(
      'REFIT_USAGE',
      `--binaries wants two versions of k0s, found ${from.version} twice`,
    );
  return { from, to, later: [] };
}

async function givenRelease(executable: string): Promise<Release> {
  const { ok, stdout, stderr } = await run(executable, ['version']).catch((error: unknown) => ({
    ok: false,
    stdout: '',
    stderr: messageOf(error),
  }));
  const version = stdout.trim();
  if (ok && /^v\d+\.\d+\.\d+\S*\+k0s\.\d+$/.test(version)) return { executable, version };
  const failure = stderr.trim() === '' ? 'which fails' : `which fails: ${stderr.trim()}`;
  const said = ok ? `which prints "${version.slice(0, 80)}"` : failure;
  throw new RefitError(
    'REFIT_USAGE',
    `--binaries wants executables of k0s, whose command \`version\` prints such as ${TO}, found ${executable}, ${said}`,
  );
}

/** Builds the releases that the scenes need from a repository of k0s. */
export async function builtReleases(
  repository: string,
  scenes: readonly SceneName[],
  building: BuildOptions,
): Promise<Releases> {
  const source = await unpackSource(repository, FROM);
  const from = {
    version: FROM,
    executable: await buildK0s(source, await gatherPayload(source, building), FROM, building),
  };
  const newer = await unpackSource(repository, TO);
  const payload = await gatherPayload(newer, building);
  const build = async (version: string, files = payload): Promise<Release> => ({
    version,
    executable: await buildK0s(newer, files, version, building),
  });
  const to = await build(TO);
  if (!scenes.some((scene) => NEED_SOURCE.includes(scene))) return { from, to, later: [] };
  const later: Release[] = [];
  for (const version of LATER) later.push(await build(version));
  return {
    from,
    to,
    later,
    withoutKubelet: await build(WITHOUT_KUBELET, await without('kubelet', payload)),
    withoutManager: await build(WITHOUT_MANAGER, await without('kube-controller-manager', payload)),
  };
}

/** Replaces a program of the payload by a program that only fails. */
async function without(program: string, payload: readonly string[]): Promise<string[]> {
  const folder = join(await cacheFolder('proof'), 'k0s-failing');
  await mkdir(folder, { recursive: true });
  const failing = join(folder, program);
  await writeFile(failing, `#!/bin/sh\necho "this ${program} never starts" >&2\nexit 1\n`);
  await chmod(failing, 0o755);
  return payload.map((path) => (basename(path) === program ? failing : path));
}

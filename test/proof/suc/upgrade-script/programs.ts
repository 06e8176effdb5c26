/** Builds the stand-ins for K3s, and the images that install them, as k3s-io/k3s-upgrade makes its images. */
import { chmod, copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildOptions, ensureBuilt } from '../../../../tools/controlplane/build.ts';
import { kubernetesProgram } from '../../../../tools/controlplane/components.ts';
import { must } from '../../../../tools/release/commands.ts';
import { buildGoFile } from '../../machines/go-file.ts';
import { writeImage } from '../../machines/images.ts';
import { fetchPackages } from '../../machines/packages.ts';
import { busybox } from '../images.ts';
import type { UpgradeScript } from './script.ts';

/** The versions of K3s, from old to new. */
export const OLD = 'v1.36.2+k3s1';
export const NEW = 'v1.36.3+k3s1';
export const NEWER = 'v1.36.3+k3s2';
/** A version whose image contains the program of the version before. */
export const EMPTY = 'v1.36.3+k3s3';

export const IMAGE = 'rancher/k3s-upgrade';
export const tagOf = (version: string): string => version.replace('+', '-');
/** The path of a program on this machine and, below /opt/parts, on every machine. */
export const programBelow = (parts: string, version: string): string =>
  join(parts, 'k3s', version, 'k3s');

/** Builds the programs below `parts`. Their kubelets and kubectls are real, and the linker sets their version. */
export async function buildK3s(parts: string, options: BuildOptions): Promise<void> {
  const own = {
    ...options,
    environment: { ...options.environment, KUBEBUILDER_ASSETS: undefined },
  };
  for (const version of [OLD, NEW, NEWER]) {
    const [kubernetes = ''] = version.split('+');
    const recipes = (['kubelet', 'kubectl'] as const).map(
      (name) => [name, kubernetesProgram(name, `proof/${kubernetes}`, version)] as const,
    );
    const [kubelet = '', kubectl = ''] = await ensureBuilt(recipes, own);
    const target = programBelow(parts, version);
    await mkdir(join(target, '..'), { recursive: true });
    const directory = await mkdtemp(join(parts, 'making-'));
    const source = join(directory, 'k3s.go');
    await copyFile(join(import.meta.dirname, 'k3s.go'), source);
    await copyFile(kubelet, join(directory, 'kubelet'));
    await copyFile(kubectl, join(directory, 'kubectl'));
    await buildGoFile(source, target, own, { version });
    await rm(directory, { recursive: true });
    await chmod(target, 0o755);
  }
}

/**
 * The image of k3s-upgrade contains jq and the ps of procps. The shell of busybox-static would run its own ps instead, and
 * dash has another `kill`, so the image has the busybox that needs libraries.
 */
const PACKAGES = ['busybox', 'procps', 'libproc2-0', 'jq', 'libjq1', 'libonig5'];
const PROGRAMS = { 'usr/local/bin/ps': 'bin/ps', 'usr/local/bin/jq': 'usr/bin/jq' };

/** Returns the paths of the archives below `parts`. */
export async function makeUpgradeImages(
  parts: string,
  script: UpgradeScript,
  log: (line: string) => void,
): Promise<string[]> {
  const debian = await fetchPackages(PACKAGES, log);
  const { files, links } = await busybox(debian);
  const tools = Object.fromEntries(
    Object.entries(PROGRAMS).map(([path, program]) => [path, join(debian, program)]),
  );
  const libraries = await librariesOf(debian, [...Object.values(files), ...Object.values(tools)]);
  const archives: string[] = [];
  await mkdir(join(parts, 'k3s-upgrade'));
  for (const version of [OLD, NEW, NEWER]) {
    const archive = `k3s-upgrade/${version}.tar`;
    const all: Readonly<Record<string, string>> = {
      ...files,
      ...tools,
      ...libraries,
      [script.place]: script.path,
      'opt/k3s': programBelow(parts, version),
    };
    await writeImage(join(parts, archive), await mkdtemp(join(parts, 'making-')), {
      name: `docker.io/${IMAGE}:${tagOf(version)}`,
      files: all,
      links: Object.fromEntries(Object.entries(links).filter(([path]) => all[path] === undefined)),
      entrypoint: script.entrypoint,
      command: script.command,
    });
    archives.push(archive);
  }
  return archives;
}

/** Returns the libraries of the programs by their paths in an image. */
async function librariesOf(
  debian: string,
  programs: readonly string[],
): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  const [own = ''] = (await must('sh', ['-c', `echo ${debian}/usr/lib/*-linux-gnu*`])).split('\n');
  for (const program of programs) {
    const ldd = await must('ldd', [program], { environment: { LD_LIBRARY_PATH: own } });
    for (const [, library = ''] of ldd.matchAll(/^\t(?:.* => )?(\/\S+)/gm))
      files[library.replace(`${debian}/`, '/').slice(1)] = library;
  }
  return files;
}

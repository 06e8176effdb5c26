/**
 * Makes the images that the specs and the Jobs of the original name. No image is pulled: the machines have no access to
 * any registry.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { VERSION } from '../../../src/cli/version.ts';
import { must } from '../../../tools/release/commands.ts';
import { makeRefitImage, REFIT_ARCHIVE } from '../kubeadm/images/refit.ts';
import { deriveImage, type ImageParts, writeImage } from '../machines/images.ts';
import type { Original } from './original.ts';

/** The image in which Jobs run their commands. Here it contains only busybox. */
export const ALPINE = 'docker.io/library/alpine:3.18';
/** The image that cordons and drains. Here it contains the kubectl of the cluster, whatever its tag says. */
const KUBECTL = 'docker.io/rancher/kubectl:v1.30.3';
/** The image of Refit that starts as the original does: without arguments, with the original's variables. */
export const STAND_IN = `refit.dev/system-upgrade-controller:${VERSION}`;

/**
 * A variable of Refit that the guide names. With it, Refit does at its start what the original always does: it creates
 * the definition of Plans.
 */
export const SWITCH = 'SYSTEM_UPGRADE_CONTROLLER_INSTALL_CRD=true';

export const originalImage = (version: string): string =>
  `docker.io/rancher/system-upgrade-controller:${version}`;

const FOLDER = 'suc-images';

/**
 * Makes the images of Refit and of kubectl. `kubernetes` is a version. Returns the paths of the archives below `parts`,
 * which is the folder that all machines can read.
 */
export async function makeCommonImages(parts: string, kubernetes: string): Promise<string[]> {
  await mkdir(join(parts, FOLDER));
  const archive = `${FOLDER}/kubectl.tar`;
  await writeImage(join(parts, archive), await mkdtemp(join(parts, 'making-')), {
    name: KUBECTL,
    files: { 'bin/kubectl': join(parts, kubernetes, 'kubectl') },
    entrypoint: ['/bin/kubectl'],
  });
  await makeRefitImage(parts);
  return [archive, REFIT_ARCHIVE];
}

/** Makes the images for the parts with the original, after the common images. Returns the paths of their archives. */
export async function makeOriginalImages(
  parts: string,
  original: Original,
  version: string,
): Promise<string[]> {
  const temporary = async (): Promise<string> => await mkdtemp(join(parts, 'making-'));
  const images: Readonly<Record<string, ImageParts>> = {
    alpine: { name: ALPINE, ...(await busybox(join(parts, 'debian'))) },
    original: {
      name: originalImage(version),
      files: { 'bin/system-upgrade-controller': original.controller },
      entrypoint: ['/bin/system-upgrade-controller'],
    },
  };
  for (const [name, image] of Object.entries(images))
    await writeImage(join(parts, FOLDER, `${name}.tar`), await temporary(), image);
  await deriveImage(join(parts, FOLDER, 'stand-in.tar'), await temporary(), {
    base: join(parts, REFIT_ARCHIVE),
    name: STAND_IN,
    entrypoint: ['/usr/bin/system-upgrade-controller'],
    environment: [SWITCH],
  });
  return [...Object.keys(images), 'stand-in'].map((name) => `${FOLDER}/${name}.tar`);
}

/** Returns busybox from a folder with its Debian package, with a link for each of its commands. */
export async function busybox(
  debian: string,
): Promise<Required<Pick<ImageParts, 'files' | 'links'>>> {
  const program = ['usr/bin/busybox', 'bin/busybox']
    .map((path) => join(debian, path))
    .find((path) => existsSync(path));
  if (program === undefined) throw new Error(`${debian} has no busybox`);
  const commands = (await must(program, ['--list'])).trim().split('\n');
  const links = commands.map((name) => [`usr/local/bin/${name}`, '/bin/busybox'] as const);
  return {
    files: { 'bin/busybox': program },
    links: { 'bin/sh': 'busybox', ...Object.fromEntries(links) },
  };
}

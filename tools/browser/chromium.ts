/**
 * Fetches Debian's Chromium with all its dependencies for the tests of the user interface, once for each machine.
 * Installs nothing on this machine.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, RefitError } from '../../src/util/errors.ts';
import { cacheDirectory } from '../controlplane/build.ts';
import { must } from '../release/commands.ts';

/** A font is needed too: without one, texts have no height. */
const PACKAGES = ['chromium-headless-shell', 'fonts-dejavu-core'];

export interface Chromium {
  readonly executablePath: string;
  /** The variables that the process needs in addition to its own environment. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Returns the browser that REFIT_CHROMIUM names. Otherwise returns Debian's browser from the cache of this machine.
 * Remove the cache to get a newer browser. Rejects with REFIT_FILE if there is no browser.
 */
export async function fetchChromium(
  environment: NodeJS.ProcessEnv = process.env,
): Promise<Chromium> {
  const own = environment['REFIT_CHROMIUM'];
  if (own !== undefined) return { executablePath: own, env: {} };
  const folder = join(dirname(cacheDirectory(environment)), 'chromium', process.arch);
  await mkdir(dirname(folder), { recursive: true });
  if (!existsSync(folder))
    await download(folder).catch((cause: unknown) => {
      const problem = `no Chromium for the tests of the dashboard: ${messageOf(cause)}`;
      const hint =
        'repair the access to the packages of Debian, or name a Chromium in the variable REFIT_CHROMIUM';
      throw new RefitError('REFIT_FILE', problem, { cause, hint });
    });
  const root = join(folder, 'root');
  const libraries = await Promise.all(
    ['usr/lib', 'lib'].map(async (name) => await foldersOf(join(root, name))),
  );
  return {
    executablePath: join(root, 'usr/lib/chromium/chromium-headless-shell'),
    env: {
      LD_LIBRARY_PATH: libraries.flat().join(':'),
      FONTCONFIG_FILE: join(folder, 'fonts.conf'),
    },
  };
}

/** Returns the folder of the architecture, such as `x86_64-linux-gnu`, and its subfolders that contain libraries. */
async function foldersOf(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => name.endsWith('-linux-gnu'))
    .flatMap((name) => [
      join(folder, name),
      join(folder, name, 'nss'),
      join(folder, name, 'pulseaudio'),
    ]);
}

/**
 * Downloads the packages with a separate package state in which no package is installed. So apt-get fetches every
 * dependency.
 */
async function download(folder: string): Promise<void> {
  const staging = await mkdtemp(`${folder}-`);
  try {
    const state = join(staging, 'apt');
    for (const name of ['lists/partial', 'cache/archives/partial'])
      await mkdir(join(state, name), { recursive: true });
    await writeFile(join(state, 'status'), '');
    const settings = {
      'Dir::State': state,
      'Dir::State::lists': join(state, 'lists'),
      'Dir::State::status': join(state, 'status'),
      'Dir::Cache': join(state, 'cache'),
      'APT::Sandbox::User': 'root',
      'APT::Install-Recommends': 'false',
      'Acquire::Languages': 'none',
      'Debug::NoLocking': 'true',
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    await must('apt-get', [...options, 'update'], { cwd: staging });
    const install = ['install', '--yes', '--download-only', ...PACKAGES];
    await must('apt-get', [...options, ...install], { cwd: staging });
    const archives = join(state, 'cache', 'archives');
    const root = join(staging, 'root');
    await mkdir(root);
    for (const name of (await readdir(archives)).filter((each) => each.endsWith('.deb')))
      await must('dpkg-deb', ['-x', join(archives, name), root]);
    await rm(state, { recursive: true });
    await writeFile(join(staging, 'fonts.conf'), fontsIn(join(folder, 'root', 'usr/share/fonts')));
    await rename(staging, folder);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    throw error;
  }
}

function fontsIn(folder: string): string {
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${folder}</dir></fontconfig>\n`;
}

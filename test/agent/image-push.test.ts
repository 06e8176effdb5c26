/**
 * Pushes the image of a release with the command of the guide, to a registry on this machine. skopeo and the registry
 * are packages of Debian.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/util/clock.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';
import { cacheFolder, must } from '../../tools/release/commands.ts';
import { fetchLibraries } from '../../tools/release/debian.ts';
import { ociArchive } from '../../tools/release/image.ts';
import { PLATFORMS } from '../../tools/release/node-package.ts';
import { leftOut } from '../support/left-out.ts';

/** The registry, skopeo, its trust policy, and the libraries that a small Debian lacks. */
const PACKAGES =
  'docker-registry skopeo golang-github-containers-common libgpgme11 libassuan0 libdevmapper1.02.1';
const GUIDE = join(import.meta.dirname, '../../docs/guides/install.md');
const VERSION = '1.2.3';
const INDEX = 'application/vnd.oci.image.index.v1+json';

/** Returns the folder of the unpacked packages, which stays in the cache. */
async function unpackedPackages(): Promise<string> {
  const folder = await cacheFolder('skopeo');
  const unpacked = join(folder, 'unpacked');
  if (existsSync(unpacked)) return unpacked;
  const staging = await mkdtemp(join(folder, 'staging-'));
  try {
    const download = `apt-get download ${PACKAGES}`;
    const fetch = `${download} || { apt-get update && ${download}; }`;
    const unpack = 'for package in *.deb; do dpkg-deb -x "$package" unpacked; done';
    await must('sh', ['-ec', `${fetch}\n${unpack}`], { cwd: staging });
    await rename(join(staging, 'unpacked'), unpacked);
  } finally {
    await rm(staging, { recursive: true });
  }
  return unpacked;
}

/**
 * Returns the reason why the packages are not available; undefined if they are. Downloads the packages at the first
 * call.
 */
async function whyNoPackages(): Promise<string | undefined> {
  try {
    await unpackedPackages();
    return undefined;
  } catch (error) {
    return `the packages of Debian cannot be unpacked: ${String(error)}`;
  }
}

const why = await whyNoPackages();
if (why === undefined) describe('the image of a release', suite);
else leftOut('the image of a release', why);

function suite(): void {
  let packages = '';
  let directory = '';
  let address = '';
  let registry: Process | undefined;

  beforeAll(async () => {
    packages = await unpackedPackages();
    directory = await mkdtemp(join(tmpdir(), 'refit-image-push-'));
    for (const name of ['logs', 'pids', '.config/containers'])
      await mkdir(join(directory, name), { recursive: true });
    address = `127.0.0.1:${await freePort()}`;
    registry = await startRegistry();
    await setUpSkopeo();
  });

  afterAll(async () => {
    await registry?.stop();
    await rm(directory, { recursive: true });
  });

  async function startRegistry(): Promise<Process> {
    const settings = {
      version: 0.1,
      storage: { filesystem: { rootdirectory: join(directory, 'registry') } },
      http: { addr: address },
    };
    // JSON is YAML too.
    await writeFile(join(directory, 'registry.yaml'), JSON.stringify(settings));
    return await startProcess({
      name: 'registry',
      command: join(packages, 'usr/bin/docker-registry'),
      args: ['serve', 'registry.yaml'],
      directory,
      ready: async () =>
        await fetch(`http://${address}/v2/`).then(
          ({ ok }) => ok,
          () => false,
        ),
      clock: systemClock,
    });
  }

  /**
   * The package contains the policy that it would install in /etc. The registry of a user has a certificate, but the
   * registry of this test has no certificate.
   */
  async function setUpSkopeo(): Promise<void> {
    const settings = join(directory, '.config/containers');
    const policy = await readFile(join(packages, 'etc/containers/policy.json'));
    await writeFile(join(settings, 'policy.json'), policy);
    const insecure = `[[registry]]\nlocation = "${address}"\ninsecure = true\n`;
    await writeFile(join(settings, 'registries.conf'), insecure);
  }

  /** Runs commands with skopeo in PATH, and returns their output. */
  function runInShell(commands: string): string {
    const libraries = globSync('{usr/,}lib/*-linux-gnu', { cwd: packages });
    return execFileSync('sh', ['-ec', commands], {
      cwd: directory,
      encoding: 'utf8',
      env: {
        HOME: directory,
        PATH: `${join(packages, 'usr/bin')}:${process.env['PATH'] ?? ''}`,
        LD_LIBRARY_PATH: libraries.map((library) => join(packages, library)).join(':'),
      },
    });
  }

  test('skopeo pushes it for all platforms by the command of the guide', async () => {
    const program = join(directory, 'program');
    await writeFile(program, 'stands for the binary: only its place in the image matters');
    const platforms = await Promise.all(
      PLATFORMS.map(async (platform) => ({
        platform,
        binary: program,
        libraries: await fetchLibraries(platform.debianArch),
      })),
    );
    const archive = await ociArchive({ version: VERSION, time: 0, platforms, level: 1 });
    await writeFile(join(directory, 'refit-image.tar'), archive);

    const guide = await readFile(GUIDE, 'utf8');
    const commands = new Set(guide.match(/^skopeo copy .*$/gm));
    expect(commands.size, 'one command, wherever the guide has it').toBe(1);
    for (const command of commands)
      runInShell(command.replace('registry.example.com', address).replace('VERSION', VERSION));

    const pushed = await fetch(`http://${address}/v2/refit/manifests/${VERSION}`, {
      headers: { accept: INDEX },
    });
    expect(pushed.headers.get('content-type')).toBe(INDEX);
    const { manifests } = (await pushed.json()) as {
      manifests: { platform: { architecture: string; os: string } }[];
    };
    expect(manifests.map(({ platform }) => platform)).toEqual(
      PLATFORMS.map(({ goArch }) => ({ architecture: goArch, os: 'linux' })),
    );
    const seen = runInShell(`skopeo inspect docker://${address}/refit:${VERSION}`);
    expect(JSON.parse(seen)).toMatchObject({ RepoTags: [VERSION], Os: 'linux' });
  });
}

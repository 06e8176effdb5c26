/**
 * Writes a release: binaries, image, chart, manifests, licences, bill of materials, checksums. The same commit gives
 * the same release.
 */
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { VERSION } from '../../src/cli/version.ts';
import { RefitError } from '../../src/util/errors.ts';
import { buildProgram } from '../build/refit.ts';
import { buildBinary } from './binary.ts';
import { packedChart } from './chart.ts';
import { must } from './commands.ts';
import { type DebianPackage, fetchLibraries } from './debian.ts';
import { filesBelow } from './files-below.ts';
import { ociArchive } from './image.ts';
import { installManifests } from './install-manifest.ts';
import { krewArchive, krewManifest } from './krew.ts';
import { type Lock, nodePackage, PLATFORMS, readLock } from './node-package.ts';
import { billOfMaterials, bundledPackages, licenceTexts } from './third-party.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const CHART = join(ROOT, 'deploy', 'chart');

export interface ReleaseOptions {
  /** Emptied first. */
  readonly output: string;
  /** Called with one line for each part. */
  readonly log: (line: string) => void;
}

export async function writeRelease({ output, log }: ReleaseOptions): Promise<void> {
  const time = await releaseTime();
  const lock = await readLock(ROOT);
  await rm(output, { recursive: true, force: true });
  await mkdir(output, { recursive: true });
  await writeBinaries(lock, output, log);
  const packages = await writeImage(time, output, log);
  await writePapers({ lock, time, packages }, output);
  await writeManifests(output, time);
  await writeInstallManifests(output);
  await writeKrew(output, time);
  await writeFile(join(output, 'SHA256SUMS'), await checksums(output));
  log(`${relative(process.cwd(), output)}: refit ${VERSION}`);
}

/**
 * Returns the time of the release in seconds since 1970: SOURCE_DATE_EPOCH, or the time of the commit if this variable
 * is not set.
 */
async function releaseTime(): Promise<number> {
  const text =
    process.env['SOURCE_DATE_EPOCH'] ||
    (await must('git', ['log', '-1', '--format=%ct'], { cwd: ROOT })).trim();
  if (/^\d+$/.test(text)) return Number(text);
  throw new RefitError(
    'REFIT_FILE',
    `SOURCE_DATE_EPOCH: "${text}" is not a number of seconds since 1970`,
  );
}

const binaryIn = (output: string, arch: string): string => join(output, `refit-linux-${arch}`);

async function writeBinaries(
  lock: Lock,
  output: string,
  log: ReleaseOptions['log'],
): Promise<void> {
  const program = await mkdtemp(join(tmpdir(), 'refit-program-'));
  try {
    await buildProgram(program);
    for (const platform of PLATFORMS) {
      log(`binary for linux-${platform.arch}`);
      await buildBinary(platform, lock, program, binaryIn(output, platform.arch));
    }
  } finally {
    await rm(program, { recursive: true });
  }
}

async function writeImage(
  time: number,
  output: string,
  log: ReleaseOptions['log'],
): Promise<readonly DebianPackage[]> {
  log('image');
  const platforms = [];
  for (const platform of PLATFORMS) {
    const libraries = await fetchLibraries(platform.debianArch);
    platforms.push({ platform, binary: binaryIn(output, platform.arch), libraries });
  }
  await writeFile(
    join(output, 'refit-image.tar'),
    await ociArchive({ version: VERSION, time, platforms }),
  );
  return platforms.flatMap(({ libraries }) => libraries.packages);
}

interface Papers {
  readonly lock: Lock;
  readonly time: number;
  readonly packages: readonly DebianPackage[];
}

async function writePapers({ lock, time, packages }: Papers, output: string): Promise<void> {
  const npm = bundledPackages(lock);
  const [platform] = PLATFORMS;
  const node = lock.packages[`node_modules/${platform.package}`];
  if (node === undefined) throw new RefitError('REFIT_FILE', 'package-lock.json has no Node.js');
  const bill = billOfMaterials({ version: VERSION, time, node, npm, debian: packages });
  await writeFile(join(output, 'refit-sbom.cdx.json'), bill);
  const texts = await licenceTexts(npm, ROOT, await nodePackage(platform, lock));
  await writeFile(join(output, 'THIRD-PARTY-LICENSES.txt'), texts);
  await cp(join(ROOT, 'LICENSE'), join(output, 'LICENSE'));
}

async function writeManifests(output: string, time: number): Promise<void> {
  const deploy = join(ROOT, 'deploy');
  const files = await filesBelow(deploy);
  // The bases of kustomize use the manifests of the chart, so these manifests are copied as well.
  for (const file of files.filter(
    (path) => !path.startsWith('chart/') || path.startsWith('chart/manifests/'),
  )) {
    await cp(join(deploy, file), join(output, 'manifests', file));
  }
  await writeFile(join(output, `refit-${VERSION}.tgz`), await packedChart(CHART, time));
}

/** Writes the manifests to install. REFIT_IMAGE is the repository to which the image of this release will be pushed. */
async function writeInstallManifests(output: string): Promise<void> {
  const repository = process.env['REFIT_IMAGE'] || undefined;
  for (const { name, text } of installManifests(join(ROOT, 'deploy'), {
    version: VERSION,
    repository,
  }))
    await writeFile(join(output, name), text);
}

async function writeKrew(output: string, time: number): Promise<void> {
  const licence = await readFile(join(ROOT, 'LICENSE'));
  const archives = [];
  for (const { arch, goArch } of PLATFORMS) {
    const archive = krewArchive(goArch, await readFile(binaryIn(output, arch)), licence, time);
    await writeFile(join(output, archive.name), archive.content);
    archives.push(archive);
  }
  await writeFile(join(output, 'krew.yaml'), krewManifest(VERSION, archives));
}

/** Returns the checksums in the format that `sha256sum` writes and checks. */
async function checksums(output: string): Promise<string> {
  const lines = [];
  for (const file of await filesBelow(output)) {
    const hash = createHash('sha256').update(await readFile(join(output, file)));
    lines.push(`${hash.digest('hex')}  ${file}\n`);
  }
  return lines.join('');
}

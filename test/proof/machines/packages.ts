/**
 * Downloads the programs that no Go module contains, as Debian packages. Unpacks the packages without installing them.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RefitError } from '../../../src/util/errors.ts';
import { lastLines, run } from '../../../tools/controlplane/run.ts';
import { cacheFolder, must } from '../../../tools/release/commands.ts';

/** The packages, with the libraries that a small system lacks. */
const PACKAGES = [
  'runc',
  'containernetworking-plugins',
  'iptables',
  'conntrack',
  'libxtables12',
  'libip4tc2',
  'libip6tc2',
  'libnftnl11',
  'libmnl0',
  'libnetfilter-conntrack3',
  'libnfnetlink0',
  'libseccomp2',
  'sudo',
  'busybox-static',
  'libfaketime',
];
/** Downloads packages. `apt-get update` changes only apt's own lists. */
const fetching = (names: string): string =>
  `apt-get download ${names} || { apt-get update && apt-get download ${names}; }`;
const UNPACK = 'for package in *.deb; do dpkg-deb -x "$package" . && rm "$package"; done';

/** Downloads the packages once, and copies them to `parts/debian`. */
export async function gatherPackages(parts: string, log: (line: string) => void): Promise<void> {
  await must('cp', ['-a', await fetchPackages(PACKAGES, log), join(parts, 'debian')]);
}

/** Downloads these packages once, and returns the folder with their files, which nobody may change. */
export async function fetchPackages(
  packages: readonly string[],
  log: (line: string) => void,
): Promise<string> {
  const list = createHash('sha256').update(packages.join()).digest('hex').slice(0, 8);
  const kept = join(await cacheFolder('proof'), `debian-${process.arch}-${list}`);
  if (!existsSync(kept)) {
    log('fetching Debian packages');
    const staging = await mkdtemp(`${kept}-`);
    const { ok, stdout, stderr } = await run(
      'sh',
      ['-ec', `${fetching(packages.join(' '))}\n${UNPACK}`],
      {
        cwd: staging,
      },
    );
    if (!ok) {
      await rm(staging, { recursive: true });
      throw new RefitError(
        'REFIT_TESTENV',
        `the packages ${packages.join(', ')} cannot be fetched: run this on Debian, where \`apt-get download\` works: ${lastLines(stdout + stderr)}`,
      );
    }
    await rename(staging, kept);
  }
  return kept;
}

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
];
/** Downloads the packages. `apt-get update` changes only apt's own lists. */
const FETCH = `apt-get download ${PACKAGES.join(' ')} || { apt-get update && apt-get download ${PACKAGES.join(' ')}; }`;
const UNPACK = 'for package in *.deb; do dpkg-deb -x "$package" . && rm "$package"; done';

/** Downloads the packages once, and copies them to `parts/debian`. */
export async function gatherPackages(parts: string, log: (line: string) => void): Promise<void> {
  const list = createHash('sha256').update(PACKAGES.join()).digest('hex').slice(0, 8);
  const kept = join(await cacheFolder('proof'), `debian-${process.arch}-${list}`);
  if (!existsSync(kept)) {
    log('fetching Debian packages');
    const staging = await mkdtemp(`${kept}-`);
    const { ok, stdout, stderr } = await run('sh', ['-ec', `${FETCH}\n${UNPACK}`], {
      cwd: staging,
    });
    if (!ok) {
      await rm(staging, { recursive: true });
      throw new RefitError(
        'REFIT_TESTENV',
        `the packages ${PACKAGES.join(', ')} cannot be fetched: run this on Debian, where \`apt-get download\` works: ${lastLines(stdout + stderr)}`,
      );
    }
    await rename(staging, kept);
  }
  await must('cp', ['-a', kept, join(parts, 'debian')]);
}

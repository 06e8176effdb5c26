/**
 * Makes the files that Krew, the plugin manager of kubectl, installs: an archive for each platform, and the manifest
 * that names the archives.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { stringify } from 'yaml';
import { HOMEPAGE } from '../../src/util/home.ts';
import { tar } from './tar.ts';

export interface KrewArchive {
  readonly name: string;
  /** The architecture, with the name that Go uses. */
  readonly arch: string;
  readonly content: Buffer;
}

/** Returns the archive of the plugin. kubectl runs the program `kubectl-refit` for `kubectl refit`. */
export function krewArchive(
  arch: string,
  binary: Buffer,
  licence: Buffer,
  time: number,
): KrewArchive {
  const entries = [
    { path: 'kubectl-refit', mode: 0o755, content: binary },
    { path: 'LICENSE', mode: 0o644, content: licence },
  ];
  return {
    name: `kubectl-refit_linux_${arch}.tar.gz`,
    arch,
    content: gzipSync(tar(entries, time), { level: 6 }),
  };
}

/**
 * Returns the manifest. RELEASE_URL in it is a placeholder for the address at which the files of the release are
 * published.
 */
export function krewManifest(
  version: string,
  archives: readonly KrewArchive[],
  homepage: string = HOMEPAGE,
): string {
  return stringify(
    {
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: 'refit' },
      spec: {
        version: `v${version}`,
        ...(homepage === '' ? {} : { homepage }),
        shortDescription: 'Show and control node upgrades',
        description:
          'Shows what upgrades of nodes do, what waits and why, and what comes next. Pauses, resumes, aborts and retries plans of k0s Autopilot, system-upgrade-controller, kubeadm and Cluster API that Refit carries out.\n',
        platforms: archives.map(({ name, arch, content }) => ({
          selector: { matchLabels: { os: 'linux', arch } },
          uri: `RELEASE_URL/${name}`,
          sha256: createHash('sha256').update(content).digest('hex'),
          files: ['kubectl-refit', 'LICENSE'].map((from) => ({ from, to: '.' })),
          bin: 'kubectl-refit',
        })),
      },
    },
    { lineWidth: 0 },
  );
}

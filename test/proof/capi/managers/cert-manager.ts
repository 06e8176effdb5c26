/** Builds cert-manager's controller from the Go module proxy, and runs it without its webhook. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../../src/util/clock.ts';
import { applyManifest } from '../../../../tools/controlplane/apply.ts';
import { type BuildOptions, ensureBuilt } from '../../../../tools/controlplane/build.ts';
import { freePort } from '../../../../tools/controlplane/ports.ts';
import { probeAs } from '../../../../tools/controlplane/probe.ts';
import { type Process, startProcess } from '../../../../tools/controlplane/process.ts';
import type { Scene } from '../scene.ts';
import { sourcesOf } from './programs.ts';

const MANIFEST = 'proof/cert-manager';
const MODULE = 'github.com/cert-manager/cert-manager';

/** The last release whose main module contains the controller. `cert-manager.io/v1` has not changed since. */
const VERSION = 'v1.11.5';

export interface CertManager {
  readonly path: string;
  /** The folder with the definitions of its kinds. */
  readonly definitions: string;
}

export async function gatherCertManager(options: BuildOptions): Promise<CertManager> {
  const flags = ['-ldflags', '-s -w'];
  const recipe = { module: MANIFEST, package: `${MODULE}/cmd/controller`, version: VERSION, flags };
  const [path = ''] = await ensureBuilt([['cert-manager', recipe]], options);
  const sources = await sourcesOf(MANIFEST, [MODULE], options);
  return { path, definitions: join(sources.get(MODULE) ?? '', 'deploy/crds') };
}

/** The namespace in which cert-manager keeps the authorities of ClusterIssuers. */
export const CERT_MANAGER = 'cert-manager';

export async function startCertManager(
  { kubeconfig, options }: Scene,
  built: CertManager,
): Promise<Process> {
  const files = (await readdir(built.definitions)).filter((file) => file.endsWith('.yaml'));
  const texts = files.map(async (file) => await readFile(join(built.definitions, file), 'utf8'));
  // The files are templates of the chart. This removes the lines into which the chart would insert labels.
  const plain = (await Promise.all(texts)).map((text) => text.replaceAll(/^.*\{\{.*\n/gm, ''));
  await applyManifest(kubeconfig, plain.join('\n---\n'));
  const address = `127.0.0.1:${await freePort()}`;
  const probe = probeAs({ ca: '', cert: '', key: '' });
  return await startProcess({
    name: CERT_MANAGER,
    command: built.path,
    args: [
      `--kubeconfig=${kubeconfig}`,
      `--cluster-resource-namespace=${CERT_MANAGER}`,
      '--leader-elect=false',
      `--metrics-listen-address=${address}`,
    ],
    directory: options.directory,
    ready: async () => await probe(`http://${address}/metrics`),
    clock: systemClock,
    abort: options.abort,
  });
}

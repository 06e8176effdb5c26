/** UpdaterSets for tests. */
import { type Updater, type UpdaterSet, updaterSets } from '../../../src/api/refit/updater-set.ts';
import { apiVersionOf } from '../../../src/kube/resources.ts';
import { createAuthority, validFrom } from '../../../tools/controlplane/certs.ts';
import { T0 } from '../clock/times.ts';

export function bundleOf(certificate: string): string {
  return Buffer.from(certificate).toString('base64');
}

export const ANY_CA = bundleOf(
  createAuthority({ commonName: 'updaters' }, validFrom(T0)).certificate,
);

export function buildUpdater(name: string, more: Partial<Updater> = {}): Updater {
  return { name, url: `https://${name}.example.com`, caBundle: ANY_CA, ...more };
}

export function buildUpdaterSet(
  name: string,
  updaters: readonly Updater[],
  spec: Partial<UpdaterSet['spec']> = {},
): UpdaterSet {
  const { kind } = updaterSets;
  return {
    apiVersion: apiVersionOf(updaterSets),
    kind,
    metadata: { name },
    spec: { ...spec, updaters: [...updaters] },
  };
}

/**
 * Tests on a real API server that the view of the informer becomes correct despite faults.
 * test/faults/informer-fuzz.test.ts tests the same at length in memory.
 */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { Pem } from '../../src/kube/config/cluster-config.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { runTrial } from '../faults/informer-world.ts';
import { WHOLE } from '../support/whole.ts';
import { kubeconfigFor } from './control-plane.ts';

const MUTATIONS = 500;

async function textOf(pem: Pem | undefined): Promise<string> {
  if (pem === undefined) throw new Error('the kubeconfig lacks a certificate');
  return 'text' in pem ? pem.text : await readFile(pem.file, 'utf8');
}

test.each(WHOLE ? [11, 12] : [11])(`seed %i: ${MUTATIONS} changes under faults`, async (seed) => {
  const config = await loadClusterConfig({ path: await kubeconfigFor('admin') });
  const { user, certificateAuthority, server } = config;
  const [ca, cert, key] = await Promise.all(
    [certificateAuthority, user.clientCertificate, user.clientKey].map(textOf),
  );
  const upstream = { url: server, tls: { ca: ca ?? '', cert: cert ?? '', key: key ?? '' } };
  const outcome = await runTrial({
    seed,
    mutations: MUTATIONS,
    config,
    upstream,
    compact: () => undefined,
  });
  expect(outcome.violations).toEqual([]);
  expect(outcome.events).toBeGreaterThan(MUTATIONS / 4);
  expect(outcome.faults.size).toBeGreaterThan(5);
});

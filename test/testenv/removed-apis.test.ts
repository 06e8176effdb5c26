/** Tests that a process finds objects of removed kinds on a real API server, also of kinds that are newer than the process. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { askRemovedApis } from '../../src/dialects/autopilot/plan/removed-apis.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import {
  installRemovedKind,
  REMOVED_KIND_FOUND,
  REMOVED_OBJECT,
} from '../support/doubles/removed-kind.ts';
import { kubeconfigFor, kubectlAs } from './control-plane.ts';

let client: KubeClient;

beforeAll(async () => {
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('controller') }));
});

afterAll(() => client.close());

async function ask(version: string): Promise<string | undefined> {
  return await askRemovedApis({ client }, version);
}

test('a kind that was added after Refit first asked is found while an object of this kind exists', async () => {
  expect(await ask('v99.99.99')).toBeUndefined();
  await using _ = await installRemovedKind();
  await vi.waitFor(async () => expect(await ask('v99.99.99')).toBe(REMOVED_KIND_FOUND), {
    timeout: 150_000,
    interval: 250,
  });
  expect(await ask('v99.99.98')).toBeUndefined();
  await kubectlAs('admin', ['delete', 'removedcrds', REMOVED_OBJECT]);
  expect(await ask('v99.99.99')).toBeUndefined();
});

test('nothing that this Kubernetes serves blocks the upgrade to its version', async () => {
  expect(await ask('v1.36.3+k0s.0')).toBeUndefined();
});

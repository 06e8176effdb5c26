/** The proof that objects of removed kinds are found on a real API server, by a process that is older than their kind. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { askRemovedApis } from '../../src/dialects/autopilot/removed-apis.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { installRemovedKind, REMOVED_KIND_FOUND, REMOVED_OBJECT } from '../doubles/removed-kind.ts';
import { kubeconfigFor, kubectlAs } from './control-plane.ts';

let client: KubeClient;

beforeAll(async () => {
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('controller') }));
});

afterAll(() => client.close());

async function ask(version: string): Promise<string | undefined> {
  return await askRemovedApis(client, version, new AbortController().signal);
}

test('a kind that came after the process is found as soon as an object of it is there, and no longer', async () => {
  expect(await ask('v99.99.99')).toBeUndefined();
  await using _ = await installRemovedKind();
  await vi.waitFor(async () => expect(await ask('v99.99.99')).toBe(REMOVED_KIND_FOUND), { timeout: 30_000 });
  expect(await ask('v99.99.98')).toBeUndefined();
  await kubectlAs('admin', ['delete', 'removedcrds', REMOVED_OBJECT]);
  expect(await ask('v99.99.99')).toBeUndefined();
});

test('what this Kubernetes serves has nothing that stands against it', async () => {
  expect(await ask('v1.36.3+k0s.0')).toBeUndefined();
});

/** Tests that a client does not take the refusals of an API server that has just started for missing rights. */
import { expect, onTestFinished, test } from 'vitest';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { isForbidden } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { applyManifest } from '../../tools/controlplane/apply.ts';
import { documentedRoles, startControlPlane } from '../../tools/controlplane/control-plane.ts';
import { SPARING } from './control-plane.ts';

test('while the API server restarts, a user with the right gets no refusal', async () => {
  const plane = await startControlPlane({ environment: SPARING, log: () => undefined });
  onTestFinished(async () => await plane.stop());
  await applyManifest(await plane.kubeconfig('admin'), await documentedRoles());
  const config = await loadClusterConfig({ path: await plane.kubeconfig('controller') });
  const over = new AbortController();
  const refusals: string[] = [];
  let answers = 0;
  const ask = async (): Promise<void> => {
    while (!over.signal.aborted) {
      // A new client has no connection, as a process that has just lost its connection.
      using client = createClient(config);
      try {
        await client.list(nodes, { limit: 1, deadlineMs: 10_000 });
        answers++;
      } catch (error) {
        if (isForbidden(error)) refusals.push(error.message);
      }
    }
  };
  const asking = [ask(), ask(), ask()];
  for (let round = 0; round < 3; round++) await plane.restartApiServer();
  over.abort();
  await Promise.all(asking);
  expect(answers).toBeGreaterThan(0);
  expect(refusals).toEqual([]);
}, 180_000);

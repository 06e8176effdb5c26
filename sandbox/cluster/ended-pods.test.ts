/** Tests that the planes of the demonstrations remove deleted pods, as the kubelets of a real cluster do. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { pods } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { type Plane, startSandboxPlane } from './plane.ts';

let directory: string;
let plane: Plane;
let client: KubeClient;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-ended-pods-'));
  plane = await startSandboxPlane(directory);
  client = createClient({ server: plane.url, user: {}, namespace: 'default', files: [] });
});

afterEach(async () => {
  client.close();
  await plane.stop();
  await rm(directory, { recursive: true });
});

const where = { namespace: 'default' };

async function createPod(name: string, grace: number): Promise<void> {
  const spec = {
    nodeName: 'worker1',
    terminationGracePeriodSeconds: grace,
    containers: [{ name: 'c', image: 'example.com/c' }],
  };
  await client.create(pods, { metadata: { name, ...where }, spec });
}

const names = async (): Promise<string[]> =>
  (await client.list(pods, where)).items.map(({ metadata }) => metadata.name);

test('a deleted pod with a node is removed after its grace period, and other pods stay', async () => {
  await createPod('short', 1);
  await createPod('long', 1000);
  await createPod('kept', 1);
  await client.delete(pods, 'short', where);
  await client.delete(pods, 'long', where);
  expect(await names()).toEqual(['kept', 'long', 'short']);
  await vi.waitFor(async () => expect(await names()).toEqual(['kept', 'long']), 60_000);
});

test('a deleted pod is removed sooner if a second deletion shortens its grace period', async () => {
  await createPod('long', 1000);
  await client.delete(pods, 'long', where);
  await client.delete(pods, 'long', { ...where, gracePeriodSeconds: 1 });
  await vi.waitFor(async () => expect(await names()).toEqual([]), 60_000);
});

/** Carries out the example Plans of k0s with real processes: a controller, and an agent on each stand-in host. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { type Cluster, startCluster } from '../../sandbox/cluster/cluster.ts';
import { type Plane, startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { payloadPath } from '../../sandbox/cluster/served-versions.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';

const FROM = 'v1.36.2+k0s.0';
/** The version of the examples, and the version that this test uses for the second example. */
const IN_EXAMPLES = 'v1.36.3+k0s.0';
const LATER = 'v1.36.3+k0s.1';
const BUNDLE = randomBytes(10_000);
const BUNDLE_PATH = '/bundle/images.tar';
const PATIENCE = { timeout: 150_000, interval: 100 };

let directory = '';
let plane: Plane;
let cluster: Cluster;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-examples-'));
  const bundle = join(directory, 'images.tar');
  await writeFile(bundle, BUNDLE);
  plane = await startSandboxPlane(directory);
  cluster = await startCluster({
    plane,
    directory,
    controllers: 3,
    workers: 3,
    version: FROM,
    offers: [IN_EXAMPLES, LATER],
    files: { [BUNDLE_PATH]: bundle },
    restartDelayMs: 50,
  });
  await cluster.startController('controller');
});

afterAll(async () => {
  await cluster.stop();
  await plane.stop();
  await rm(directory, { recursive: true });
});

/** The Plan of the example, with the names, the addresses and the hashes of this cluster. */
async function planIn(example: string, version: string): Promise<Plan> {
  const text = await readFile(`examples/k0s/${example}.yaml`, 'utf8');
  const { downloads } = cluster;
  const path = payloadPath(version);
  const bundleSha256 = createHash('sha256').update(BUNDLE).digest('hex');
  const adapted = text
    .replaceAll('[c1, c2, c3]', '[controller1, controller2, controller3]')
    .replaceAll('[w1, w2, w3]', '[worker1, worker2, worker3]')
    .replace(
      /https:\S*airgap-bundle\S*\n( *)sha256: .*/,
      `${downloads.url}${BUNDLE_PATH}\n$1sha256: ${bundleSha256}`,
    )
    .replaceAll(
      /https:\S+\n( *)sha256: .*/g,
      `${downloads.url}${path}\n$1sha256: ${downloads.sha256(path)}`,
    )
    .replaceAll(`version: ${IN_EXAMPLES}`, `version: ${version}`);
  return parse(adapted) as Plan;
}

async function carryOut(plan: Plan): Promise<Plan> {
  await cluster.client.create(plans, plan);
  return await vi.waitFor(async () => {
    const found = await cluster.client.get(plans, 'autopilot');
    expect(found.status?.state).toBe('Completed');
    return found;
  }, PATIENCE);
}

async function versions(): Promise<(string | undefined)[]> {
  return await Promise.all(cluster.hosts.map(async (host) => await host.version()));
}

test('plan.yaml: all controllers and the workers of the pool run the version', async () => {
  await carryOut(await planIn('plan', IN_EXAMPLES));
  expect(await versions()).toEqual(cluster.hosts.map(() => IN_EXAMPLES));
  await cluster.client.delete(plans, 'autopilot');
});

test('airgap.yaml: each worker has the bundle before any node gets the version', async () => {
  const before = cluster.downloads.requests.length;
  const plan = await carryOut(await planIn('airgap', LATER));
  expect(plan.status?.commands.map(({ state }) => state)).toEqual(['Completed', 'Completed']);
  expect(await versions()).toEqual(cluster.hosts.map(() => LATER));
  for (const { dataDirectory } of cluster.hosts.filter(({ role }) => role === 'worker')) {
    const found = await readFile(join(dataDirectory, 'images', 'images.tar'));
    expect(found.equals(BUNDLE)).toBe(true);
  }
  const paths = cluster.downloads.requests.slice(before).map(({ path }) => path);
  expect(paths.lastIndexOf(BUNDLE_PATH)).toBeLessThan(paths.indexOf(payloadPath(LATER)));
});

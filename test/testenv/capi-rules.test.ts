/**
 * Tests that a running update follows the objects of Cluster API: a pause, drain rules and remediation. The extension
 * runs as the documented user.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { UpdateMachineResponse } from '../../src/api/capi/hooks.ts';
import { clusters, drainRules, machines } from '../../src/api/capi/machine.ts';
import { SKIP_LABEL } from '../../src/dialects/capi/plan/machine-care.ts';
import { apiVersionOf, pods, type Resource } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { sleep, systemClock } from '../../src/util/clock.ts';
import {
  type MachineCluster,
  machineOf,
  openMachineCluster,
  TO,
} from '../support/capi/machine-cluster.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const NAMESPACE = 'default';
const NODE = 'worker1';
const CLUSTER = 'stand-in';
const IN = { namespace: NAMESPACE };
const SKIP = 'cluster.x-k8s.io/skip-remediation';
/** The labels of the pods, by the name of the pod. */
const PODS = {
  plain: {},
  skipped: { 'cluster.x-k8s.io/drain': 'skip' },
  kept: { app: 'kept' },
  ending: {},
  awaited: { app: 'awaited' },
};
const HOLD = 'test.refit.dev/hold';
let scene: MachineCluster;

beforeAll(async () => {
  scene = await openMachineCluster({ workers: 1 });
  await scene.whenCallable('h2');
});
afterAll(async () => {
  await release();
  for (const name of Object.keys(PODS))
    await ifFound(scene.cluster.client.delete(pods, name, { ...IN, gracePeriodSeconds: 0 }));
  await scene[Symbol.asyncDispose]();
});

function typeOf(resource: Resource): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind };
}

/** Lets the pod for which a drain waits end. */
async function release(): Promise<void> {
  await ifFound(
    scene.cluster.client.patch(
      pods,
      'ending',
      { metadata: { finalizers: null } },
      { ...IN, type: 'merge' },
    ),
  );
}

async function setPhase(name: string, phase: string): Promise<void> {
  await scene.cluster.client.patch(
    pods,
    name,
    { status: { phase } },
    { ...IN, type: 'merge', subresource: 'status' },
  );
}

async function setPaused(paused: boolean): Promise<void> {
  await scene.cluster.client.patch(
    clusters,
    CLUSTER,
    { spec: { paused } },
    { ...IN, type: 'merge' },
  );
}

async function podsThere(): Promise<string[]> {
  const { items } = await scene.cluster.client.list(pods, {
    ...IN,
    fieldSelector: `spec.nodeName=${NODE}`,
  });
  return items
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .map(({ metadata }) => metadata.name);
}

test('a drain obeys drain rules, labels and a pause, and remediation is off during the update', async () => {
  const { client } = scene.cluster;
  await client.create(clusters, {
    ...typeOf(clusters),
    metadata: { name: CLUSTER, namespace: NAMESPACE },
    spec: {},
  });
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } };
  const kept = [{ selector: { matchLabels: PODS.kept }, namespaceSelector }];
  const spec = { drain: { behavior: 'Skip' as const }, pods: kept };
  await client.create(drainRules, {
    ...typeOf(drainRules),
    metadata: { name: 'kept', namespace: NAMESPACE },
    spec,
  });
  const waits = {
    drain: { behavior: 'WaitCompleted' as const },
    pods: [{ selector: { matchLabels: PODS.awaited } }],
  };
  const metadata = { name: 'awaited', namespace: NAMESPACE };
  await client.create(drainRules, { ...typeOf(drainRules), metadata, spec: waits });
  for (const [name, labels] of Object.entries(PODS)) {
    const containers = [{ name: 'one', image: 'none' }];
    const podSpec = { nodeName: NODE, containers, terminationGracePeriodSeconds: 0 };
    const finalizers = name === 'ending' ? [HOLD] : [];
    await client.create(pods, {
      metadata: { name, namespace: NAMESPACE, labels, finalizers },
      spec: podSpec,
    });
    await setPhase(name, 'Running');
  }
  const words: string[] = [];
  const hear = (answer: UpdateMachineResponse | Error): void =>
    void words.push(answer instanceof Error ? answer.message : (answer.message ?? ''));
  const updated = scene.update(NODE, scene.manager('h2', hear));
  const left =
    '2 pods are left on node worker1 (default/awaited, default/ending): waiting for default/awaited to complete';
  await vi.waitFor(() => expect(words.at(-1)).toBe(left), PATIENCE);
  expect(await podsThere()).toEqual(['awaited', 'kept', 'skipped']);

  await setPaused(true);
  const paused = `Cluster default/${CLUSTER} is paused: ${NODE} is not drained`;
  await vi.waitFor(() => expect(words.at(-1)).toBe(paused), PATIENCE);
  await release();
  await setPhase('awaited', 'Succeeded');
  const before = words.length;
  await vi.waitFor(() => expect(words.length).toBeGreaterThan(before), PATIENCE);
  expect(words.at(-1)).toBe(paused);

  const over = new AbortController();
  const remediation = new Set<string | undefined>();
  const looking = (async () => {
    while (!over.signal.aborted) {
      const { metadata } = await client.get(machines, machineOf(NODE), IN);
      remediation.add(metadata.annotations?.[SKIP]);
      await sleep(systemClock, PATIENCE.interval);
    }
  })();
  await setPaused(false);
  await updated.finally(() => over.abort());
  await looking;
  expect(await scene.cluster.hosts[0]?.version()).toBe(TO);
  expect(await podsThere()).toEqual(['awaited', 'kept', 'skipped']);
  expect(remediation).toContain('upgrade.refit.dev');
  await vi.waitFor(async () => {
    const { annotations = {}, labels = {} } = (await client.get(machines, machineOf(NODE), IN))
      .metadata;
    expect([annotations[SKIP], labels[SKIP_LABEL]]).toEqual([undefined, undefined]);
  }, PATIENCE);
});

/** Tests that the doubles drain as real k0s did: node by node, with one conflict each, and without waiting for budgets. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeClient } from '../../../src/kube/client.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { namespaces, type Pod, pods, type Resource } from '../../../src/kube/resources.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { loadRecording } from '../../support/doubles/recorded-plan.ts';
import { startStage } from '../../support/doubles/stage.ts';
import { cordonLines, linesByObject, statusOf } from '../../support/doubles/write-lines.ts';
import { kubeconfigFor } from '../control-plane.ts';

const NAMESPACE = 'doubles-drain';
const deployments: Resource = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
};
const budgets: Resource = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
};
const labels = { app: 'web' };

let admin: KubeClient;
beforeAll(async () => {
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await admin.create(namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: NAMESPACE },
  });
});
afterAll(async () => {
  await admin.delete(namespaces, NAMESPACE);
  admin.close();
});

/** Spreads pods over all workers before the first worker is cordoned. */
async function deploy(
  replicas: number,
  until: (condition: () => Promise<void>) => Promise<void>,
): Promise<AsyncDisposable> {
  const metadata = { name: 'web', namespace: NAMESPACE };
  const spread = {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'ScheduleAnyway',
  };
  const template = {
    metadata: { labels },
    spec: {
      containers: [{ name: 'web', image: 'web' }],
      topologySpreadConstraints: [{ ...spread, labelSelector: { matchLabels: labels } }],
    },
  };
  const spec = { replicas, selector: { matchLabels: labels }, template };
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec };
  await admin.create(deployments, deployment);
  await until(async () => {
    const running = (await podsThere()).filter(({ status }) => status?.phase === 'Running');
    expect(running).toHaveLength(replicas);
  });
  return {
    async [Symbol.asyncDispose]() {
      await admin.delete(deployments, 'web', {
        namespace: NAMESPACE,
        propagationPolicy: 'Background',
      });
      await until(async () => expect(await podsThere()).toEqual([]));
    },
  };
}

async function forbidEvictions(): Promise<AsyncDisposable> {
  const metadata = { name: 'web', namespace: NAMESPACE };
  const spec = { minAvailable: '100%', selector: { matchLabels: labels } };
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec };
  await admin.create(budgets, budget);
  return {
    [Symbol.asyncDispose]: async () => await admin.delete(budgets, 'web', { namespace: NAMESPACE }),
  };
}

async function podsThere(): Promise<Pod[]> {
  return (await admin.list(pods, { namespace: NAMESPACE })).items;
}

/** The recording of a release, and those that `npm run proof:k0s` made of two releases that it built. */
const DRAINS = [
  'plan-3w-drain-concurrent3',
  'recorded/v1.36.2+k0s.0/3w-drain-concurrent3',
  'recorded/v1.36.3+k0s.2/3w-drain-concurrent3',
];
const CORDON = '{"spec":{"unschedulable":true}}';

/**
 * Compares, in addition to recordings.test.ts, how the leader cordoned and drained all Nodes, in the leader's order.
 * Evictions in a row count as one, because the scheduler decides how many pods a node has.
 */
test.each(DRAINS)(
  '#46: as in %s, k0s drains three workers one after the other, and none continues before all are drained',
  async (name) => {
    const recording = loadRecording(name);
    const [leader = ''] = recording.leaders;
    // The leader waits as long as the original before it checks evicted pods. Meanwhile, it cordons all other nodes.
    await using stage = await startStage({
      controllers: [leader],
      workers: ['w1', 'w2', 'w3'],
      picks: recording.picks,
      times: { podGone: 1_000 },
    });
    await using _ = await deploy(6, async (condition) => await stage.until(condition));
    const start = stage.recorder.writes.length;
    const cordoning = async (node: string): Promise<void> =>
      await stage.until(async () => expect(await stage.status(node)).toBe('Cordoning'));
    // The nodes become `Cordoning` in the order in which they were cordoned, and all of them before the first cordon.
    const order = recording.writes.flatMap((write) =>
      JSON.stringify(write.body) === CORDON ? write.name : [],
    );
    expect(order).toHaveLength(3);
    stage.recorder.hold = async ({ name: node, annotations = {}, body }) => {
      if (node === order[0] && JSON.stringify(body) === CORDON)
        return await cordoning(order[2] ?? '');
      const before = order[order.indexOf(node) - 1];
      if (before !== undefined && statusOf(annotations) === 'Cordoning') await cordoning(before);
    };
    await stage.create(recording.plan(stage.downloads));
    await stage.untilPlan('Completed');
    const writes = stage.recorder.writes.slice(start);
    expect(linesByObject(writes)).toEqual(linesByObject(recording.writes));
    expect(cordonLines(writes)).toEqual(cordonLines(recording.writes));
    // There are more evictions than the six pods, because pods of the first node are rescheduled to the next node.
    expect(writes.filter(({ resource }) => resource === 'pods/eviction').length).toBeGreaterThan(6);
  },
);

test('#47: while a PodDisruptionBudget allows no eviction, k0s repeats the eviction without a pause', async () => {
  await using stage = await startStage({ controllers: ['c1'], workers: ['w1'] });
  await using _ = await deploy(1, async (condition) => await stage.until(condition));
  const budget = await forbidEvictions();
  const recording = loadRecording('06-two-k0supdates');
  await stage.create(recording.plan(stage.downloads));
  const refused = (): number =>
    stage.recorder.writes.filter(
      ({ resource, code }) => resource === 'pods/eviction' && code === 429,
    ).length;
  await stage.until(() => expect(refused()).toBeGreaterThan(50));
  expect(await stage.isCordoned('w1')).toBe(true);
  await budget[Symbol.asyncDispose]();
  await stage.until(async () => expect(await stage.status('w1')).toBe('Completed'));
});

test('#28: if a drain exceeds its time limit, k0s starts it again and again, and the node stays cordoned', async () => {
  await using stage = await startStage({
    controllers: ['c1'],
    workers: ['w1'],
    times: { drain: 100 },
  });
  await using _ = await deploy(1, async (condition) => await stage.until(condition));
  await using things = new AsyncDisposableStack();
  things.use(await forbidEvictions());
  await stage.create(loadRecording('06-two-k0supdates').plan(stage.downloads));
  const attempts = (): number =>
    stage.logs.get('c1')?.filter((line) => line.includes('not drained in time')).length ?? 0;
  await stage.until(() => expect(attempts()).toBeGreaterThan(2));
  expect([await stage.isCordoned('w1'), await stage.status('w1')]).toEqual([true, 'Cordoning']);
  expect(await stage.planState()).toBe('SchedulableWait');
});

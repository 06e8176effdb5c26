/** Tests drains: pods of real controllers, real disruption budgets, evictions with only the documented rights. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { cordonOwner, withoutCordon } from '../../src/drain/cordon-marks.ts';
import { type DrainPreview, drainPreviewer } from '../../src/drain/drain-preview.ts';
import { refusalOf } from '../../src/drain/eviction-refusal.ts';
import { DEFAULT_DRAIN } from '../../src/drain/pods.ts';
import { createDrains, type Drains } from '../../src/drain/running-drains.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { createElection, type Election, timesOf } from '../../src/kube/election/election.ts';
import { guardedClient } from '../../src/kube/election/write-guard.ts';
import { leases, nodes, type Pod, podDisruptionBudgets, pods } from '../../src/kube/resources.ts';
import { isConflict, StatusError } from '../../src/kube/status-error.ts';
import { createManager } from '../../src/runtime/manager.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { kubectlAs } from './control-plane.ts';
import {
  auditedEvictions,
  beginDrain,
  clientOf,
  fastClock,
  PATIENCE,
  Stage,
} from './drain-stage.ts';
import { Workloads } from './drain-workloads.ts';

const NAMESPACE = 'drain-test';
const held = { finalizers: ['drain.example.com/hold'] };
let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open(NAMESPACE);
});

afterAll(async () => await stage.close());

const at = (name: string): Workloads => new Workloads(NAMESPACE, name);
const namesOf = (found: readonly Pod[]): string[] =>
  found.map(({ metadata }) => metadata.name.replace(/-.*/, '')).toSorted();
const isEnding = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
const look = async (node: string): Promise<DrainPreview> =>
  await drainPreviewer(stage.controller, new AbortController().signal).ahead(node, DEFAULT_DRAIN);

test('pods go side by side and are waited for; those of the node itself, and those that are done, stay', async () => {
  const set = at('drain-mixed');
  const mirror = {
    annotations: { 'kubernetes.io/config.mirror': 'x' },
    spec: { nodeName: 'drain-mixed-a' },
  };
  const scratch = { ...held, spec: { volumes: [{ name: 'scratch', emptyDir: {} }] } };
  const workloads = [
    set.of('Deployment', 'mixed', { replicas: 6 }, held),
    set.of('StatefulSet', 'scratch', { serviceName: 'scratch' }, scratch),
    set.of('DaemonSet', 'daemon'),
    set.pod('bare', held),
    set.pod('mirror', mirror),
    set.job('job'),
  ];
  const node = await stage.set('drain-mixed', workloads, 11);
  expect(await look(node)).toEqual({ evictable: 8, obstacles: [], refused: [] });

  const { progress, done } = beginDrain(node, stage.controller);
  const ending = async (): Promise<Pod[]> => (await stage.podsOn(node)).filter(isEnding);
  await vi.waitFor(async () => expect(await ending()).toHaveLength(8), PATIENCE);
  expect(progress).toMatchObject([{ left: 8 }]);
  for (const { metadata } of await ending()) await stage.release(metadata.name);
  await done;
  expect(progress.at(-1)).toEqual({ left: 0 });
  expect(namesOf(await stage.podsOn(node))).toEqual(['daemon', 'job', 'mirror']);
  expect(await auditedEvictions('mixed-')).toEqual([201, 201, 201, 201, 201, 201]);
  // The bare pod is not replaced, because it has no controller.
  await vi.waitFor(
    async () => expect(await stage.running('drain-mixed-b')).toHaveLength(8),
    PATIENCE,
  );
});

test('three nodes drain at the same time, and no drain waits for the end of another', async () => {
  const names = ['drain-one', 'drain-two', 'drain-three'];
  const found: string[] = [];
  for (const name of names)
    found.push(await stage.set(name, [at(name).of('Deployment', name, { replicas: 2 }, held)], 2));
  const drains = createDrains({
    client: stage.controller,
    clock: systemClock,
    random: Math.random,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = drains.run(stop.signal);
  const kinds = (): unknown[] => found.map((node) => drains.stateOf(node, 'rollout/1')?.kind);
  for (const node of found) drains.begin(node, 'rollout/1', DEFAULT_DRAIN);
  const endings = async (): Promise<Pod[]> =>
    (await Promise.all(found.map(async (node) => await stage.podsOn(node))))
      .flat()
      .filter(isEnding);
  await vi.waitFor(async () => expect(await endings()).toHaveLength(2 * names.length), PATIENCE);
  expect(kinds()).toEqual(['draining', 'draining', 'draining']);
  for (const { metadata } of await endings()) await stage.release(metadata.name);
  await vi.waitFor(() => expect(kinds()).toEqual(['drained', 'drained', 'drained']), PATIENCE);
  stop.abort();
  await running;
});

test('a cordon of ours is taken away with its mark, and the API server keeps neither', async () => {
  const node = await stage.set('drain-cordon', [], 0);
  const cordoned = await stage.admin.get(nodes, node);
  expect([cordoned.spec?.unschedulable, cordonOwner(cordoned)]).toEqual([true, 'rollout/1']);
  await stage.change(node, withoutCordon);
  const free = await stage.admin.get(nodes, node);
  expect([free.spec?.unschedulable, cordonOwner(free)]).toEqual([undefined, undefined]);
});

test('a budget that allows no eviction is found before the drain; during it, Refit retries more and more slowly', async () => {
  const set = at('drain-budget');
  const workloads = [
    set.of('Deployment', 'held', { replicas: 6 }),
    set.budget('all', 'held', { maxUnavailable: 0 }),
  ];
  const node = await stage.set('drain-budget', workloads, 6);
  const held = (await stage.podsOn(node))
    .map(({ metadata }) => `${NAMESPACE}/${metadata.name}`)
    .toSorted();
  const reason = 'it wants 6 of its 6 pods healthy at all times (maxUnavailable: 0)';
  const obstacles = [{ budget: `${NAMESPACE}/all`, pods: held, reason }];
  await vi.waitFor(
    async () => expect(await look(node)).toEqual({ evictable: 6, obstacles, refused: [] }),
    PATIENCE,
  );

  const clock = fastClock();
  const began = clock.monotonic();
  const { progress, done } = beginDrain(node, stage.controller, clock);
  const text = `PodDisruptionBudget ${NAMESPACE}/all blocks ${held.slice(0, 5).join(', ')} and 1 more: it needs 6 healthy pods and has 6 currently`;
  const pods = held.slice(0, 5);
  await vi.waitFor(
    () => expect(progress.at(-1)).toEqual({ left: 6, pods, blockedBy: text }),
    PATIENCE,
  );
  // There is one eviction for each pod. The retries follow after 1, 2, 4, 8, 10, … seconds. Each pause is shortened by
  // up to half, so there are at most 16 retries in 45 s.
  await vi.waitFor(
    async () => expect((await auditedEvictions('held-')).length).toBeGreaterThanOrEqual(6 + 8),
    PATIENCE,
  );
  expect(clock.monotonic() - began).toBeGreaterThan(
    ((1 + 2 + 4 + 8 + 10 + 10 + 10 + 10) / 2) * 1000,
  );
  expect(new Set(await auditedEvictions('held-'))).toEqual(new Set([429]));

  await stage.admin.delete(podDisruptionBudgets, 'all', { namespace: NAMESPACE });
  await done;
  expect((await auditedEvictions('held-')).filter((code) => code === 201)).toHaveLength(6);
  expect(progress.at(-1)).toEqual({ left: 0 });
});

test('whose lease is gone begins no drain, and asks for nothing any more; its successor does', async () => {
  const set = at('drain-term');
  const workloads = [
    set.of('Deployment', 'term', {}),
    set.budget('term', 'term', { maxUnavailable: 0 }),
  ];
  const node = await stage.set('drain-term', workloads, 1);
  const first = candidate('first');
  await vi.waitFor(() => expect(first.election.term()).toBeDefined(), PATIENCE);
  first.drains.begin(node, 'rollout/1', DEFAULT_DRAIN);
  await vi.waitFor(
    () => expect(first.drains.stateOf(node, 'rollout/1')).toHaveProperty('blockedBy'),
    PATIENCE,
  );

  await stage.admin.delete(leases, 'drain-term', { namespace: NAMESPACE });
  const second = candidate('second');
  await vi.waitFor(() => expect(second.election.term()).toBeDefined(), PATIENCE);
  await vi.waitFor(() => expect(first.drains.stateOf(node, 'rollout/1')).toBeUndefined(), PATIENCE);
  first.drains.begin(node, 'rollout/1', DEFAULT_DRAIN);
  expect(first.drains.stateOf(node, 'rollout/1')).toBeUndefined();

  const asked = first.asked();
  second.drains.begin(node, 'rollout/1', DEFAULT_DRAIN);
  await vi.waitFor(() => expect(second.asked()).toBeGreaterThan(1), PATIENCE);
  await stage.admin.delete(podDisruptionBudgets, 'term', { namespace: NAMESPACE });
  await vi.waitFor(
    () => expect(second.drains.stateOf(node, 'rollout/1')?.kind).toBe('drained'),
    PATIENCE,
  );
  expect(first.asked()).toBe(asked);
});

/** A process that drains while it holds the lease. */
function candidate(identity: string): { election: Election; drains: Drains; asked: () => number } {
  let asked = 0;
  const lease = { namespace: NAMESPACE, name: 'drain-term', ...timesOf(3_000) };
  const election = createElection({ client: stage.admin, ...lease, identity });
  const withOrigin = guardedClient(stage.controller, election);
  const evict: KubeClient['evict'] = async (...args) => {
    asked++;
    return await withOrigin.evict(...args);
  };
  const client = { ...withOrigin, evict };
  const drains = createDrains({
    client,
    clock: systemClock,
    random: Math.random,
    log: silentLogger,
  });
  const manager = createManager({ election });
  manager.addRunnable({ name: 'drains', run: async (term) => await drains.run(term) }, 'leading');
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  return { election, drains, asked: () => asked };
}

test('a budget with one to spare lets them go as fast as their successors are ready', async () => {
  const set = at('drain-rolling');
  const workloads = [
    set.of('Deployment', 'rolling', { replicas: 5 }),
    set.budget('one', 'rolling', { maxUnavailable: 1 }),
  ];
  const node = await stage.set('drain-rolling', workloads, 5);
  const allowed = async (): Promise<number | undefined> =>
    (await stage.admin.get(podDisruptionBudgets, 'one', { namespace: NAMESPACE })).status
      ?.disruptionsAllowed;
  await vi.waitFor(async () => expect(await allowed()).toBe(1), PATIENCE);
  expect(await look(node)).toEqual({ evictable: 5, obstacles: [], refused: [] });
  await beginDrain(node, stage.controller, fastClock()).done;
  expect(await stage.podsOn(node)).toEqual([]);
  expect((await auditedEvictions('rolling-')).filter((code) => code === 201)).toHaveLength(5);
});

test('a workload that tolerates the cordon and fits nowhere else is left after some tries', async () => {
  const set = at('drain-returning');
  const spec = {
    nodeSelector: { 'kubernetes.io/hostname': 'drain-returning-a' },
    tolerations: [{ operator: 'Exists' }],
  };
  const workloads = [
    set.of('Deployment', 'returning', {}, { spec }),
    set.of('Deployment', 'going'),
  ];
  const node = await stage.set('drain-returning', workloads, 2);
  await beginDrain(node, stage.controller).done;
  const evicted = (await auditedEvictions('returning-')).length;
  expect(evicted).toBeGreaterThanOrEqual(1);
  expect(evicted).toBeLessThanOrEqual(4);
  await vi.waitFor(
    async () => expect(namesOf(await stage.running(node))).toEqual(['returning']),
    PATIENCE,
  );
});

test('the pods of a DaemonSet that is gone are evicted', async () => {
  const set = at('drain-orphan');
  const node = await stage.set('drain-orphan', [set.of('DaemonSet', 'orphaned')], 1);
  expect(await look(node)).toMatchObject({ evictable: 0 });
  await kubectlAs('admin', [
    'delete',
    'daemonset',
    'orphaned',
    '-n',
    NAMESPACE,
    '--cascade=orphan',
  ]);
  // Kubernetes may or may not have removed the pod's reference to its owner yet. In both cases the pod counts as a pod
  // without an owner.
  expect(await look(node)).toMatchObject({ evictable: 1 });
  await beginDrain(node, stage.controller).done;
  expect(await stage.podsOn(node)).toEqual([]);
});

test('a node drains itself with the rights of its kubelet', async () => {
  const set = at('drain-self');
  const node = await stage.set(
    'drain-self',
    [set.of('Deployment', 'self', { replicas: 2 }), set.of('DaemonSet', 'stay')],
    3,
  );
  const kubelet = await clientOf({ node });
  await beginDrain(node, kubelet).done;
  kubelet.close();
  expect(namesOf(await stage.podsOn(node))).toEqual(['stay']);
});

test('an eviction means one pod, not its name', async () => {
  const set = at('drain-uid');
  const node = await stage.set('drain-uid', [set.pod('unique')], 1);
  const [pod] = await stage.podsOn(node);
  const evict = stage.controller.evict({
    name: 'unique',
    namespace: NAMESPACE,
    uid: 'of-an-earlier-one',
  });
  await expect(evict).rejects.toSatisfy(isConflict);
  expect((await stage.podsOn(node)).map(({ metadata }) => metadata)).toEqual([pod?.metadata]);
});

test('a namespace that is being deleted is told as that', async () => {
  const set = new Workloads('drain-ending', 'drain-ending');
  await stage.addNamespace('drain-ending');
  const node = await stage.set('drain-ending', [set.pod('late', held)], 1);
  await kubectlAs('admin', ['delete', 'namespace', 'drain-ending', '--wait=false']);
  await vi.waitFor(
    async () => expect((await stage.podsOn(node)).filter(isEnding)).toHaveLength(1),
    PATIENCE,
  );
  const [pod] = await stage.podsOn(node);
  const thrown: unknown = await stage.controller
    .evict({ name: 'late', namespace: 'drain-ending' })
    .catch((error) => error as unknown);
  expect(thrown).toBeInstanceOf(StatusError);
  const told = pod && refusalOf(thrown, pod).describe?.('drain-ending/late');
  expect(told).toBe(
    'namespace drain-ending is being deleted, and its pods with it: drain-ending/late',
  );
  const patch = { metadata: { finalizers: null } };
  await stage.admin.patch(pods, 'late', patch, { type: 'merge', namespace: 'drain-ending' });
  await beginDrain(node, stage.controller).done;
});

describe('what is told of budgets is what the API server does', () => {
  const CASES: readonly [string, object, 'never' | 'allowed'][] = [
    ['min-all', { minAvailable: 2 }, 'never'],
    ['min-more', { minAvailable: 9 }, 'never'],
    ['min-all-percent', { minAvailable: '100%' }, 'never'],
    ['min-rounds-up', { minAvailable: '51%' }, 'never'],
    ['min-half', { minAvailable: '50%' }, 'allowed'],
    ['min-one', { minAvailable: 1 }, 'allowed'],
    ['max-none', { maxUnavailable: 0 }, 'never'],
    ['max-none-percent', { maxUnavailable: '0%' }, 'never'],
    ['max-rounds-up', { maxUnavailable: '1%' }, 'allowed'],
    ['max-one', { maxUnavailable: 1 }, 'allowed'],
    ['neither', {}, 'never'],
    ['bare-max', { maxUnavailable: 1 }, 'never'],
    ['bare-min', { minAvailable: 1 }, 'allowed'],
    ['bare-percent', { minAvailable: '50%' }, 'never'],
    ['foreign', { maxUnavailable: 1 }, 'never'],
    ['twice', { minAvailable: 1 }, 'never'],
    ['unready', { maxUnavailable: 0 }, 'never'],
    ['unready-free', { maxUnavailable: 0, unhealthyPodEvictionPolicy: 'AlwaysAllow' }, 'allowed'],
  ];
  let node = '';

  beforeAll(async () => {
    const set = at('drain-budgets');
    const owner = {
      apiVersion: 'example.com/v1',
      kind: 'Foreign',
      name: 's',
      uid: 'some-uid',
      controller: true,
    };
    const workloads = CASES.flatMap(([name, spec]) => {
      const budget = set.budget(name, name, spec);
      if (name === 'twice')
        return [
          budget,
          set.budget('twice-also', name, spec),
          set.of('Deployment', name, { replicas: 2 }),
        ];
      if (!/^(bare|foreign)/.test(name))
        return [budget, set.of('Deployment', name, { replicas: 2 })];
      const labels = { app: name };
      const traits = name === 'foreign' ? { labels, ownerReferences: [owner] } : { labels };
      return [budget, ...['0', '1'].map((index) => set.pod(`${name}-${index}`, traits))];
    });
    node = await stage.set('drain-budgets', workloads, 2 * CASES.length);
    for (const pod of await stage.podsOn(node))
      if (pod.metadata.name.startsWith('unready')) await makeUnready(pod.metadata.name);
    await vi.waitFor(async () => await expectBudgetsCounted(), PATIENCE);
  });

  async function makeUnready(name: string): Promise<void> {
    const patch = { status: { conditions: [{ type: 'Ready', status: 'False' }] } };
    await stage.admin.patch(pods, name, patch, {
      type: 'strategic',
      subresource: 'status',
      namespace: NAMESPACE,
    });
  }

  async function expectBudgetsCounted(): Promise<void> {
    const { items } = await stage.admin.list(podDisruptionBudgets, { namespace: NAMESPACE });
    const expectHealthy = (name: string, count: number): void =>
      expect(items.find(({ metadata }) => metadata.name === name)?.status?.currentHealthy).toBe(
        count,
      );
    // A pod of two budgets is counted for only one of them, which the disruption controller picks at random.
    for (const [name] of CASES) if (!/^(foreign|unready|twice)/.test(name)) expectHealthy(name, 2);
    expectHealthy('unready', 0);
    expectHealthy('unready-free', 0);
  }

  test.each(CASES)('%s %j: %s', async (name, _spec, outcome) => {
    const { obstacles } = await look(node);
    const told = obstacles.find(({ budget }) => budget === `${NAMESPACE}/${name}`);
    const [pod] = (await stage.podsOn(node)).filter(
      ({ metadata }) => metadata.labels?.['app'] === name,
    );
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: pod?.metadata.name ?? '', namespace: NAMESPACE },
      deleteOptions: { dryRun: ['All'] },
    };
    const tried: unknown = await stage.controller
      .create(pods, eviction, { subresource: 'eviction' })
      .then(
        () => 'allowed',
        (error: StatusError) => error.code,
      );
    if (outcome === 'allowed') expect([tried, told]).toEqual(['allowed', undefined]);
    else expect([told?.pods.length, tried]).toEqual([2, name === 'twice' ? 500 : 429]);
  });
});

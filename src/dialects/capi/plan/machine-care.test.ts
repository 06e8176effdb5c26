/**
 * Proves which marks Refit keeps up to date on Nodes and Machines during an update, and that it removes all of them
 * afterwards.
 */
import { expect, test, vi } from 'vitest';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import { clusters, machines } from '../../../api/capi/machine.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import type { Informer } from '../../../kube/watch/informer.ts';
import { silentLogger } from '../../../util/log.ts';
import { STEPS_ANNOTATION } from '../hooks/updaters/step-record.ts';
import { machineCare, SKIP_LABEL } from './machine-care.ts';
import { UPDATE_ANNOTATION, updateOn, withRequest } from './machine-update.ts';
import { withRules } from './policy-rules.ts';

const SKIP = 'cluster.x-k8s.io/skip-remediation';
const OURS = { [SKIP]: 'upgrade.refit.dev' };

/**
 * Starts an update and continues it until its first signal. Also returns the controller that maintains the marks on the
 * Machine of the update.
 */
async function sceneOf() {
  const scene = new MachineScene(['w1', 'w2']);
  const seen = scene.api.view(nodes);
  const informer = seen as unknown as Informer<Node>;
  const {
    api: { client },
    rulesOf,
  } = scene;
  const controller = machineCare({ management: client, writer: client, seen: informer, rulesOf });
  const look = async () => {
    seen.catchUp();
    return await controller.reconcile('all', {
      abort: new AbortController().signal,
      log: silentLogger,
    });
  };
  const marks = () => {
    const { annotations: { [STEPS_ANNOTATION]: _, ...annotations } = {}, labels = {} } =
      scene.api.read(machines, 'm-w1').metadata;
    return { annotations, isLabelled: SKIP_LABEL in labels };
  };
  await scene.ask('w1');
  await scene.lead('w1');
  return { scene, look, marks };
}

test.each([
  ['Downloading', false],
  ['Cordoning', false],
  ['ApplyingUpdate', true],
  ['Restart', true],
  ['UnCordoning', true],
  ['Completed', true],
])('a Machine whose node is at %s: remediation is held off: %s', async (status, isSkipped) => {
  const { scene, look, marks } = await sceneOf();
  scene.report('w1', status);
  expect(await look()).toEqual({ requeueAfterMs: 5_000 });
  expect(marks()).toMatchObject({ isLabelled: isSkipped, ...(isSkipped && { annotations: OURS }) });
  expect(scene.api.read(machines, 'm-w2').metadata.annotations ?? {}).toEqual({});
});

test.each<[string, (scene: MachineScene) => Promise<void> | void]>([
  [
    'is done',
    async (scene) => {
      scene.report('w1', 'Completed');
      await scene.lead('w1');
    },
  ],
  [
    'failed',
    async (scene) => {
      scene.report('w1', 'Failed');
      await scene.lead('w1');
    },
  ],
  ['was removed by a person', ({ api }) => api.change(nodes, 'w1', (node) => withoutRequest(node))],
  ['lost its Node', ({ api }) => api.remove(nodes, 'w1')],
  [
    'lost its Machine to another Node',
    ({ api }) =>
      api.change(machines, 'm-w1', (machine) => ({
        ...machine,
        status: { nodeRef: { name: 'w2' } },
      })),
  ],
])('an update that %s holds off nothing any more', async (_what, end) => {
  const { scene, look, marks } = await sceneOf();
  scene.report('w1', 'Restart');
  await look();
  expect(marks()).toEqual({ annotations: OURS, isLabelled: true });
  await end(scene);
  await look();
  expect(marks()).toEqual({ annotations: {}, isLabelled: false });
});

test('marks that are written late, after the end of the update, are removed', async () => {
  const { scene, look, marks } = await sceneOf();
  scene.report('w1', 'Failed');
  await scene.lead('w1');
  expect(await look()).toEqual({ requeueAfterMs: 300_000 });
  const late = { labels: { [SKIP_LABEL]: '' }, annotations: OURS };
  scene.api.change(machines, 'm-w1', (machine) => ({
    ...machine,
    metadata: { ...machine.metadata, ...late },
  }));
  await look();
  expect(marks()).toEqual({ annotations: {}, isLabelled: false });
});

test("a person's own annotation is neither replaced nor removed", async () => {
  const { scene, look, marks } = await sceneOf();
  const theirs = { [SKIP]: '' };
  scene.api.change(machines, 'm-w1', (machine) => ({
    ...machine,
    metadata: { ...machine.metadata, annotations: theirs },
  }));
  scene.report('w1', 'Restart');
  await look();
  expect(marks()).toEqual({ annotations: theirs, isLabelled: false });
  scene.report('w1', 'Failed');
  await scene.lead('w1');
  await look();
  expect(marks()).toEqual({ annotations: theirs, isLabelled: false });
});

test('one that a person sets over ours stays at the end', async () => {
  const { scene, look, marks } = await sceneOf();
  scene.report('w1', 'Restart');
  await look();
  const theirs = { [SKIP]: 'true' };
  scene.api.change(machines, 'm-w1', (machine) => ({
    ...machine,
    metadata: { ...machine.metadata, annotations: theirs },
  }));
  scene.report('w1', 'Failed');
  await scene.lead('w1');
  await look();
  expect(marks()).toEqual({ annotations: theirs, isLabelled: false });
});

test('a Machine of a cluster without a Node here is left as it is', async () => {
  const { scene, look } = await sceneOf();
  const metadata = {
    name: 'other',
    namespace: 'default',
    labels: { [SKIP_LABEL]: '' },
    annotations: OURS,
  };
  scene.api.put(machines, { metadata, spec: { clusterName: 'elsewhere' } });
  await look();
  expect(scene.api.read(machines, 'other').metadata.annotations).toEqual(OURS);
  const asked = updateOn(scene.node('w1'));
  // A kubelet can write a request for another Machine on its own Node.
  if (asked)
    scene.api.change(nodes, 'w1', (node) =>
      withRequest(node, { ...asked, machine: 'default/other' }),
    );
  await look();
  expect(scene.api.read(machines, 'other').metadata.annotations).toEqual(OURS);
});

test('a Machine that cannot be read holds up none of the others', async () => {
  const { scene, look, marks } = await sceneOf();
  await scene.ask('w2');
  scene.report('w1', 'Restart');
  const { client } = scene.api;
  const original = { ...client };
  vi.spyOn(client, 'get').mockImplementation(async (resource, name, options) => {
    if (name === 'm-w2') throw new Error('no answer');
    return await original.get(resource, name, options);
  });
  expect(await look()).toEqual({ requeueAfterMs: 5_000 });
  expect(marks()).toEqual({ annotations: OURS, isLabelled: true });
});

test('the request learns who pauses and how long a drain may take, and nothing new starts', async () => {
  const { scene, look } = await sceneOf();
  await scene.ask('w2');
  await look();
  expect(updateOn(scene.node('w1'))?.rules).toEqual({ drainSeconds: 0 });
  scene.api.change(machines, 'm-w1', (machine) => ({
    ...machine,
    metadata: { ...machine.metadata, annotations: { 'cluster.x-k8s.io/paused': '' } },
    spec: { ...machine.spec, deletion: { nodeDrainTimeoutSeconds: 90 } },
  }));
  await look();
  expect(updateOn(scene.node('w1'))?.rules).toEqual({
    paused: 'Machine default/m-w1',
    drainSeconds: 90,
  });
  const { resourceVersion } = scene.node('w1').metadata;
  await look();
  expect(scene.node('w1').metadata.resourceVersion).toBe(resourceVersion);
  scene.api.put(clusters, {
    metadata: { name: 'stand-in', namespace: 'default' },
    spec: { paused: true },
  });
  await look();
  expect(updateOn(scene.node('w2'))?.rules).toEqual({
    paused: 'Cluster default/stand-in',
    drainSeconds: 0,
  });
  const message = 'Cluster default/stand-in is paused: nothing new starts';
  expect(await scene.ask('w2')).toMatchObject({ message, retryAfterSeconds: 20 });
});

test.each<[string, string, (scene: MachineScene) => void]>([
  [
    'is being deleted',
    'Machine default/m-w2, which is being deleted,',
    ({ api }) =>
      api.change(machines, 'm-w2', (machine) => ({
        ...machine,
        metadata: { ...machine.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
      })),
  ],
  ['is gone', 'Machine default/m-w2, which is gone,', ({ api }) => api.remove(machines, 'm-w2')],
])('nothing starts on the node of a Machine that %s', async (_what, heldBy, end) => {
  const { scene, look } = await sceneOf();
  await scene.ask('w2');
  end(scene);
  await look();
  expect(withRules(scene.node('w2'), DEFAULT_POLICY).heldBy).toBe(heldBy);
});

test.each<[string, RolloutPolicy, object]>([
  ['without an UpgradePolicy the Machine says', DEFAULT_POLICY, { onDeadline: 'proceed' }],
  ['an UpgradePolicy says', { ...DEFAULT_POLICY, name: 'nightly' }, { onDeadline: 'stop' }],
])('%s how long a drain may take', async (_who, policy, drain) => {
  const { scene } = await sceneOf();
  const update = updateOn(scene.node('w1'));
  if (!update) throw new Error('there is no request');
  const node = withRequest(scene.node('w1'), { ...update, rules: { drainSeconds: 90 } });
  const ruled = withRules(node, policy);
  expect(ruled.drain).toMatchObject(drain);
  expect(ruled.stepDeadlines.drain === 90_000).toBe(policy.name === undefined);
});

function withoutRequest(node: Node): Node {
  const { [UPDATE_ANNOTATION]: _request, ...annotations } = node.metadata.annotations ?? {};
  return { ...node, metadata: { ...node.metadata, annotations } };
}

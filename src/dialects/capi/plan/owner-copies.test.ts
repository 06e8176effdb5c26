/** Proves that what people ask of the plan of an owner is kept, whatever happens to single Nodes. */
import { expect, test } from 'vitest';
import { refusal } from '../../../../test/support/builders/memory-api.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import { later } from '../../../../test/support/clock/times.ts';
import { NODE_ANNOTATIONS } from '../../../api/capi/machine.ts';
import { PAUSE_ANNOTATION, RETRY_ANNOTATION, withRetry } from '../../../engine/model/controls.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { UPDATE_ANNOTATION } from './machine-update.ts';

const isPaused = (scene: OwnerScene, name: string): boolean =>
  scene.node(name).metadata.annotations?.[PAUSE_ANNOTATION] !== undefined;

test('a pause is not lost if its copy meets a conflict in the turn in which another Node comes to represent the plan', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p' });
  await scene.chosen('w1', 'w2');
  await scene.finish('w2');
  await scene.fail('w1');
  await scene.chosen('w3');
  const retry = withRetry(undefined, 'w1', later(0));
  scene.control('w1', { [PAUSE_ANNOTATION]: 'true', [RETRY_ANNOTATION]: retry });
  // The kubelet of w2 writes its Node before the copy is written.
  scene.api.before('replace nodes/w2', () => {
    throw refusal(409, 'Conflict');
  });
  await scene.lead('w1');
  await scene.settle();
  expect(['w1', 'w2', 'w3'].map((name) => isPaused(scene, name))).toEqual([true, true, true]);
});

test('a Node that is deleted in mid-update and made again with its name waits like the others', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p' });
  await scene.chosen('w1', 'w2');
  await scene.finish('w1');
  const before = scene.node('w2');
  scene.api.remove(nodes, 'w2');
  await scene.lead('w1');
  scene.api.put(nodes, madeAgain(before));
  scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, { needsApproval: true }] });
  await scene.ask('w2');
  await scene.settle();
  expect(scene.started()).toEqual(['w1']);
  expect((await scene.ask('w2')).message).toMatch(/^wave 2 .*needs approval/);
});

/** Returns the Node as its kubelet and Cluster API make it again, without anything that Refit wrote. */
function madeAgain({ metadata, spec, status }: Node): Node {
  const { name, labels = {}, annotations = {} } = metadata;
  const isOfCluster = ([key]: [string, string]): boolean => key.startsWith('cluster.x-k8s.io/');
  const isOfKubelet = ([key]: [string, string]): boolean => !key.startsWith('node-restriction');
  const { unschedulable: _, ...open } = spec ?? {};
  return {
    metadata: {
      name,
      uid: 'made-again',
      labels: Object.fromEntries(Object.entries(labels).filter(isOfKubelet)),
      annotations: Object.fromEntries(Object.entries(annotations).filter(isOfCluster)),
    },
    spec: open,
    ...(status && { status }),
  };
}

test('a Node whose Cluster annotation somebody changes stays in its plan', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, {}] });
  await scene.chosen('w1', 'w2');
  scene.annotate('w2', { [NODE_ANNOTATIONS.cluster]: 'another' });
  expect(scene.plans()).toEqual(['w1']);
  expect(scene.node('w2').metadata.annotations).toHaveProperty([UPDATE_ANNOTATION]);
});

test('a Machine that waits because it is paused does not hold one that has started', async () => {
  const scene = new OwnerScene();
  await scene.ask('w1');
  scene.request('w1', { rules: { paused: 'Machine default/m-w1', drainSeconds: 0 } });
  await scene.settle();
  await scene.chosen('w2');
  expect(scene.started()).toEqual(['w2']);
  await scene.finish('w2');
  expect(await scene.ask('w2')).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
});

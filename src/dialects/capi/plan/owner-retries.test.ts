/** Proves what happens if a Machine of an owner failed, and somebody retries it or removes its request. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import { RETRY_ANNOTATION, withRetry } from '../../../engine/model/controls.ts';
import { nodes, withoutAnnotations } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { UPDATE_ANNOTATION } from './machine-update.ts';

/** Two Machines have a request, and the first one has failed. */
async function failedScene(): Promise<OwnerScene> {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, {}] });
  await scene.chosen('w1', 'w2');
  await scene.fail('w1');
  await scene.clock.advance(5000);
  return scene;
}

const statusOn = (scene: OwnerScene, name: string): string | undefined =>
  decodeSignal(scene.node(name).metadata.annotations)?.status?.status;

test('refit retry of a Machine: its agent gets another signal, and the plan goes on', async () => {
  const scene = await failedScene();
  const retry = withRetry(undefined, 'w1', rfc3339(scene.clock.now()));
  scene.control('w1', { [RETRY_ANNOTATION]: retry });
  await scene.clock.advance(5000);
  await scene.settle();
  expect([statusOn(scene, 'w1'), scene.stateOf('w1')]).toEqual([undefined, 'intended']);
  expect(await scene.ask('w1')).toMatchObject({ status: 'Success', retryAfterSeconds: 2 });
  await scene.finish('w1');
  expect(scene.started()).toEqual(['w1', 'w2']);
});

test('the request of a failed Machine is removed: the failure does not count for its next request', async () => {
  const scene = new OwnerScene();
  await scene.chosen('w1');
  await scene.fail('w1');
  scene.api.change(nodes, 'w1', (node) => withoutAnnotations(node, UPDATE_ANNOTATION));
  expect(await scene.ask('w1')).toMatchObject({ status: 'Success' });
  await scene.settle();
  expect([statusOn(scene, 'w1'), scene.stateOf('w1')]).toEqual([undefined, 'intended']);
});

test('the request of the first Machine, which failed, is removed: the Machine still belongs to the plan', async () => {
  const scene = await failedScene();
  scene.api.change(nodes, 'w1', (node) => withoutAnnotations(node, UPDATE_ANNOTATION));
  expect(scene.plans()).toEqual(['w2']);
  expect(scene.waiting('w2')).toEqual(['w1', 'w3', 'w4']);
  await scene.chosen('w1');
  expect([scene.stateOf('w1'), scene.stateOf('w2')]).toEqual([undefined, 'intended']);
});

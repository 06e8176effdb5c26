/** Proves how a start is recorded: with the plan first, so that of two leaders only one can start a Machine. */
import { expect, test } from 'vitest';
import { refusal } from '../../../../test/support/builders/memory-api.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import { annotated, nodes } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';

const writesOf = (scene: OwnerScene): string[] =>
  scene.api.calls.filter((call) => call.startsWith('replace nodes/'));

test('the start of a Machine changes the plan before it changes the Node of the Machine', async () => {
  const scene = new OwnerScene();
  await scene.chosen('w1');
  await scene.ask('w2');
  scene.api.calls.length = 0;
  await scene.settle();
  expect(writesOf(scene).slice(0, 2)).toEqual(['replace nodes/w1', 'replace nodes/w2']);
  expect(scene.stateOf('w2')).toBe('intended');
});

test('of two leaders with the same view, only one can start a Machine', async () => {
  const scene = new OwnerScene();
  await scene.chosen('w1');
  await scene.ask('w2');
  // Another leader has written the plan, but the watch of this leader does not show it yet.
  scene.api.before('replace nodes/w1', () =>
    scene.api.change(nodes, 'w1', (node) => annotated(node, { 'example.com/other': 'leader' })),
  );
  await scene.lead('w1');
  expect([scene.stateOf('w2'), decodeSignal(scene.node('w2').metadata.annotations)]).toEqual([
    undefined,
    undefined,
  ]);
  await scene.settle();
  expect(scene.started()).toEqual(['w1', 'w2']);
});

test('a Node that the API server refuses to change delays only its own Machine', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p', waves: [{ count: 2 }, {}] });
  await scene.chosen('w1', 'w2', 'w3');
  expect(scene.started()).toEqual(['w1', 'w2']);
  for (let times = 0; times < 20; times++)
    scene.api.before('replace nodes/w2', () => {
      throw refusal(403, 'Forbidden', 'a policy forbids it');
    });
  scene.api.calls.length = 0;
  await scene.finish('w2');
  expect(writesOf(scene)).toContain('replace nodes/w2');
  expect(scene.stateOf('w2')).toBe('intended');
  await scene.finish('w1');
  expect(scene.stateOf('w1')).toBe('done');
});

/** Proves that a Job which is deleted after its end is not made again, and that one which went before is. */
import { expect, test } from 'vitest';
import { buildCattlePlan, type CattleSpec } from '../../../test/builders/cattle-plans.ts';
import { buildCattleScene } from '../../../test/builders/cattle-scenes.ts';
import { MINUTE } from '../../../test/builders/times.ts';
import { jobs, type Node, nodes } from '../../kube/resources.ts';
import { hashLabelOf } from './names.ts';

const LABEL = hashLabelOf('plan');

const readiness =
  (status: 'True' | 'False') =>
  (node: Node): Node => ({
    ...node,
    status: { ...node.status, conditions: [{ type: 'Ready', status, lastTransitionTime: '2026-01-01T00:00:00Z' }] },
  });

/** The Job of the only node is at work. */
async function begin(spec: Partial<CattleSpec> = {}) {
  const scene = buildCattleScene([buildCattlePlan('plan', spec)], ['a']);
  await scene.look();
  const [job] = scene.made();
  const lose = (): void => scene.api.remove(jobs, job?.metadata.name ?? '');
  const isDone = (): boolean => scene.api.read<Node>(nodes, 'a').metadata.labels?.[LABEL] !== undefined;
  return { ...scene, lose, isDone };
}

test('its node is not Ready for longer than a finished Job lives', async () => {
  const { api, look, made, complete, lose, isDone } = await begin();
  api.change(nodes, 'a', readiness('False'));
  complete('a');
  await look();
  lose();
  await look();
  expect([made(), isDone()]).toEqual([[], false]);
  api.change(nodes, 'a', readiness('True'));
  await look();
  expect([made(), isDone()]).toEqual([[], true]);
});

test('its node rests for longer than that', async () => {
  const { look, made, complete, lose, isDone } = await begin({ postCompleteDelay: '10m' });
  complete('a');
  await look();
  lose();
  await look();
  expect([made(), isDone()]).toEqual([[], false]);
  await look(2, 10 * MINUTE);
  expect([made(), isDone()]).toEqual([[], true]);
});

test('somebody deletes it while it runs: it is made again', async () => {
  const { look, made, lose } = await begin();
  lose();
  await look();
  expect(made()).toHaveLength(1);
});

/**
 * Proves that a write which the API server refuses for one Plan does not block other Plans, does not block a node for
 * ever, and is not repeated endlessly.
 */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import {
  buildCattleScene,
  LIMITED,
  selecting,
} from '../../../../test/support/builders/cattle-scenes.ts';
import { type KubeObject, type Node, nodes } from '../../../kube/resources.ts';
import { claimOn } from '../../../signal/at-work.ts';

const TWO = [selecting('first', 'a'), selecting('second', 'b')];
const HALF_A_MINUTE = 30_000;
const isOfFirst = ({ kind, metadata }: KubeObject): boolean =>
  kind === 'Job' && metadata.name.includes('first');

test.each<[string, (object: KubeObject, subresource?: string) => boolean]>([
  ['its Job', isOfFirst],
  [
    'its record',
    ({ metadata }, subresource) => metadata.name === 'first' && subresource === 'status',
  ],
])('%s is refused: another Plan starts', async (_what, refuse) => {
  const { look, atWork, claims, refused } = buildCattleScene(TWO, ['a', 'b'], {
    policyOf: () => LIMITED,
    refuse,
  });
  await look(60, HALF_A_MINUTE);
  expect([atWork(), claims()]).toEqual([['b'], ['cattle/system-upgrade/second/second-uid']]);
  expect(refused).not.toEqual([]);
});

test('a claim that is refused leaves no node cordoned whose Job is done', async () => {
  let isLimited = false;
  const plan = selecting('plan', 'a', { cordon: true, postCompleteDelay: '10m' });
  const { api, look, complete, atWork } = buildCattleScene([plan], ['a'], {
    policyOf: () => (isLimited ? LIMITED : {}),
    refuse: (object) => claimOn(object) !== undefined,
  });
  await look();
  expect(atWork()).toEqual(['a']);
  api.change<Node>(nodes, 'a', (node) => ({ ...node, spec: { unschedulable: true } }));
  await look(1);
  isLimited = true;
  await look(1);
  complete('a');
  await look(60, HALF_A_MINUTE);
  expect(api.read<Node>(nodes, 'a').spec?.unschedulable).not.toBe(true);
});

test('claims that are refused on every node are asked for less and less often', async () => {
  const names = Array.from({ length: 50 }, (_, index) => `n${index}`);
  const { look, refused } = buildCattleScene([buildCattlePlan('plan')], names, {
    policyOf: () => LIMITED,
    refuse: (object) => claimOn(object) !== undefined,
  });
  await look(600);
  const before = refused.length;
  await look(600);
  expect(before).toBeGreaterThan(1);
  expect(refused.length).toBeLessThan(before * 3);
  expect(refused.length).toBeLessThan(100);
});

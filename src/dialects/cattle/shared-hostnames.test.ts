/** Proves that no Job starts for Nodes with the same host name: it could run on the other, and nobody could tell. */
import { expect, test } from 'vitest';
import { buildCattlePlan, type CattleSpec } from '../../../test/builders/cattle-plans.ts';
import { buildCattleScene } from '../../../test/builders/cattle-scenes.ts';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { cattlePlans } from '../../api/kinds.ts';
import { type Node, nodes } from '../../kube/resources.ts';
import { conditionOf } from './conditions.ts';
import { HOSTNAME_LABEL } from './names.ts';

const SHARED = 'the Nodes a, b have the same label kubernetes.io/hostname=a: give each Node its own value';

function begin(spec: Partial<CattleSpec> = {}) {
  const scene = buildCattleScene([buildCattlePlan('plan', spec)], ['a', 'b', 'c']);
  return {
    ...scene,
    /** Gives b a host name. */
    name: (host: string): void =>
      scene.api.change(nodes, 'b', ({ metadata, ...rest }: Node) => ({
        ...rest,
        metadata: { ...metadata, labels: { ...metadata.labels, [HOSTNAME_LABEL]: host } },
      })),
    told: () => conditionOf(scene.api.read<CattlePlan>(cattlePlans, 'plan'), 'Validated'),
  };
}

test('the Plan is held and names both, until each has its own', async () => {
  const { look, name, told, atWork } = begin({ concurrency: 3 });
  name('a');
  await look();
  expect(atWork()).toEqual([]);
  expect(told()).toMatchObject({ status: 'False', message: SHARED });
  name('b');
  await look();
  expect(atWork().toSorted()).toEqual(['a', 'b', 'c']);
  expect(told()).toMatchObject({ status: 'True' });
});

test('one comes while a Job is at work: that ends first, and no other starts', async () => {
  const { look, name, told, atWork, complete, made } = begin();
  await look();
  const [first] = atWork();
  name('a');
  await look();
  expect([atWork(), told()?.message]).toEqual([[first], SHARED]);
  complete(first);
  await look();
  expect([atWork(), made().length]).toEqual([[], 1]);
});

test('a Plan that selects neither goes on', async () => {
  const { look, name, atWork } = begin({ nodeSelector: { matchLabels: { [HOSTNAME_LABEL]: 'c' } } });
  name('a');
  await look();
  expect(atWork()).toEqual(['c']);
});

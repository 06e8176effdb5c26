/** Proves that the label of a version counts no longer than what it tells of: until another Job changes the node. */
import { expect, test } from 'vitest';
import { buildCattlePlan, type CattleSpec } from '../../../test/builders/cattle-plans.ts';
import { buildCattleScene } from '../../../test/builders/cattle-scenes.ts';
import { later, MINUTE } from '../../../test/builders/times.ts';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { cattlePlans } from '../../api/kinds.ts';
import { type Job, jobs, type Node, nodes } from '../../kube/resources.ts';
import { hashLabelOf, VERSION_LABEL } from './names.ts';

const LABEL = hashLabelOf('plan');

/** A node that is done, and the Plan at a later version, whose Job is at work. */
async function begin(spec: Partial<CattleSpec> = {}) {
  const scene = buildCattleScene([buildCattlePlan('plan', { version: 'v1', ...spec })], ['a']);
  const { api, look, made, complete } = scene;
  const ask = (version: string): void =>
    api.change(cattlePlans, 'plan', (plan: CattlePlan) => ({
      ...buildCattlePlan('plan', { version, ...spec }),
      status: plan.status ?? {},
    }));
  const cordon = (unschedulable: boolean): void =>
    api.change(nodes, 'a', (node: Node) => ({ ...node, spec: { unschedulable } }));
  await look();
  complete('a');
  await look();
  ask('v2');
  await look();
  const ofLater = (): Job | undefined => made().find(({ metadata }) => metadata.labels?.[VERSION_LABEL] === 'v2');
  const failed = { type: 'Failed', status: 'True', lastTransitionTime: later(MINUTE) } as const;
  return {
    ...scene,
    ask,
    cordon,
    isCordoned: () => api.read<Node>(nodes, 'a').spec?.unschedulable === true,
    fail: () => api.put<Job>(jobs, { metadata: { name: '' }, ...ofLater(), status: { conditions: [failed] } }),
    lose: () => made().forEach(({ metadata }) => api.remove(jobs, metadata.name)),
    versions: () => made().flatMap(({ metadata, status }) => (status ? [] : (metadata.labels?.[VERSION_LABEL] ?? ''))),
  };
}

test('a Plan goes back while the later version is at work: its Job ends first, then the node gets the earlier one', async () => {
  const { look, ask, versions, complete } = await begin();
  ask('v1');
  await look();
  expect(versions()).toEqual(['v2']);
  complete('a');
  await look(8);
  expect(versions()).toEqual(['v1']);
  complete('a');
  await look();
  expect(versions()).toEqual([]);
});

test('it goes back after the later one failed: the node gets the earlier one again, and is schedulable after it', async () => {
  const { look, ask, versions, complete, cordon, isCordoned, fail } = await begin({ cordon: true });
  cordon(true);
  fail();
  await look();
  ask('v1');
  await look(8);
  expect(versions()).toEqual(['v1']);
  complete('a');
  await look();
  expect([versions(), isCordoned()]).toEqual([[], false]);
});

test('so once the failed Job is deleted, as long as its cordon is there', async () => {
  const { look, ask, versions, complete, cordon, isCordoned, fail, lose } = await begin({ cordon: true });
  cordon(true);
  fail();
  await look();
  ask('v1');
  lose();
  await look(8);
  expect(versions()).toEqual(['v1']);
  complete('a');
  await look();
  expect([versions(), isCordoned()]).toEqual([[], false]);
});

test('somebody labels a node while its Job runs: it keeps its slot, and its cordon ends with the Job', async () => {
  const { api, look, versions, complete, cordon, isCordoned, made } = await begin({ cordon: true });
  cordon(true);
  const hash = made()[1]?.metadata.labels?.[LABEL] ?? '';
  api.change(nodes, 'a', ({ metadata, ...node }: Node) => ({
    ...node,
    metadata: { ...metadata, labels: { ...metadata.labels, [LABEL]: hash } },
  }));
  await look();
  expect([versions(), api.read<CattlePlan>(cattlePlans, 'plan').status?.applying]).toEqual([['v2'], ['a']]);
  complete('a');
  await look();
  expect([versions(), isCordoned()]).toEqual([[], false]);
});

test('once somebody made the node schedulable, its label counts', async () => {
  const { look, ask, versions, cordon, fail, lose } = await begin({ cordon: true });
  cordon(true);
  fail();
  await look();
  ask('v1');
  lose();
  cordon(false);
  await look(8);
  expect(versions()).toEqual([]);
});

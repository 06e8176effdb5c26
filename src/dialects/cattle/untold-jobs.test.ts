/** Proves that the label of its version does not hide what a Job of the node does, or did since. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/builders/cattle-plans.ts';
import { buildCattleScene } from '../../../test/builders/cattle-scenes.ts';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { cattlePlans } from '../../api/kinds.ts';
import { type Job, jobs, type Node, nodes } from '../../kube/resources.ts';
import { latestHash } from './latest.ts';
import { hashLabelOf } from './names.ts';

const LABEL = hashLabelOf('plan');
const plan = buildCattlePlan('plan', { cordon: true, concurrency: 1 });
const hash = latestHash(plan, 'v1.2.3', []);

const labelled = (node: Node): Node => ({
  ...node,
  metadata: { ...node.metadata, labels: { ...node.metadata.labels, [LABEL]: hash } },
});

/** As its Job does. */
const cordoned = (node: Node): Node => ({ ...node, spec: { ...node.spec, unschedulable: true } });

test('somebody labels a node while its Job runs: it keeps its slot, and its cordon ends with the Job', async () => {
  const { api, look, atWork, complete } = buildCattleScene([plan], ['a', 'b']);
  await look();
  const [first = ''] = atWork();
  api.change(nodes, first, (node: Node) => labelled(cordoned(node)));
  await look();
  expect(atWork()).toEqual([first]);
  complete(first);
  await look();
  expect(api.read<Node>(nodes, first)?.spec?.unschedulable).not.toBe(true);
  expect([atWork().length, atWork().includes(first)]).toEqual([1, false]);
});

test('somebody labels a node whose Job failed: it is done', async () => {
  const { api, look, made, atWork } = buildCattleScene([plan], ['a', 'b']);
  await look();
  const [first = ''] = atWork();
  const [job] = made();
  if (job) api.put<Job>(jobs, { ...job, status: { conditions: [{ type: 'Failed', status: 'True' }] } });
  await look();
  api.change(nodes, first, labelled);
  await look();
  expect([atWork().length, atWork().includes(first)]).toEqual([1, false]);
});

test('a Plan goes back while a later version is at work: the node gets the earlier one again', async () => {
  const { api, look, atWork, made, complete } = buildCattleScene([buildCattlePlan('plan')], ['a']);
  const ask = (version: string): void =>
    api.change<CattlePlan>(cattlePlans, 'plan', ({ spec: _spec, ...rest }) => ({
      ...buildCattlePlan('plan', { version }),
      ...rest,
    }));
  const versions = (): unknown[] =>
    made().map(({ metadata, status }) => [metadata.labels?.[LABEL] === hash, status !== undefined]);
  await look();
  complete('a');
  await look();
  ask('v2');
  await look();
  ask('v1.2.3');
  await look();
  expect(versions()).toEqual(expect.arrayContaining([[false, false]]));
  complete('a');
  await look(8);
  expect(atWork()).toEqual(['a']);
  expect(versions()).toEqual(expect.arrayContaining([[true, false]]));
  complete('a');
  await look();
  expect(atWork()).toEqual([]);
});

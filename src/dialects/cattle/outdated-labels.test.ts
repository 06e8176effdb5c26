/** Proves that the label of a version counts until another Job changes the node, and no longer. */
import { expect, test } from 'vitest';
import type { CattleSpec } from '../../../test/builders/cattle-plans.ts';
import { beginOnOneNode } from '../../../test/builders/one-node-plan.ts';

/** Its node is done, and the Job of the later version is at work. */
async function begin(spec: Partial<CattleSpec> = {}) {
  const scene = await beginOnOneNode(spec);
  scene.complete('a');
  await scene.look();
  scene.edit({ version: 'v2' });
  await scene.look();
  return scene;
}

test('a Plan goes back while the later version is at work: its Job ends first, then the node gets the earlier one', async () => {
  const { look, edit, versions, complete } = await begin();
  edit({ version: 'v1' });
  await look();
  expect(versions()).toEqual(['v2']);
  complete('a');
  await look(8);
  expect(versions()).toEqual(['v1']);
  complete('a');
  await look();
  expect(versions()).toEqual([]);
});

test.each<[string, boolean]>([
  ['it goes back after the later one failed: the node gets the earlier one again, and is schedulable after it', false],
  ['so once the failed Job is deleted, as long as its cordon is there', true],
])('%s', async (_name, isLost) => {
  const { look, edit, versions, complete, cordon, isCordoned, fail, lose } = await begin({ cordon: true });
  cordon(true);
  fail();
  await look();
  edit({ version: 'v1' });
  if (isLost) lose();
  await look(8);
  expect(versions()).toEqual(['v1']);
  complete('a');
  await look();
  expect([versions(), isCordoned()]).toEqual([[], false]);
});

test('once somebody made the node schedulable, its label counts', async () => {
  const { look, edit, versions, cordon, fail, lose } = await begin({ cordon: true });
  cordon(true);
  fail();
  await look();
  edit({ version: 'v1' });
  lose();
  cordon(false);
  await look(8);
  expect(versions()).toEqual([]);
});

test('the Job of its version goes before that of the earlier one: the node stays done', async () => {
  const { look, complete, lose, versions, applying } = await begin();
  complete('a');
  await look();
  lose('v2');
  await look();
  expect([versions(), applying()]).toEqual([[], []]);
});

test('somebody labels a node while its Job runs: it keeps its slot, and its cordon ends with the Job', async () => {
  const { look, versions, complete, cordon, isCordoned, label, applying } = await begin({ cordon: true });
  cordon(true);
  label(true);
  await look();
  expect([versions(), applying()]).toEqual([['v2'], ['a']]);
  complete('a');
  await look();
  expect([versions(), applying(), isCordoned()]).toEqual([[], [], false]);
});

test('somebody labels a node whose Job failed: it is done, and stays so', async () => {
  const { look, versions, cordon, fail, lose, label, applying } = await begin({ cordon: true });
  cordon(true);
  fail();
  await look();
  label(true);
  await look();
  expect(applying()).toEqual([]);
  lose();
  await look(8);
  expect([versions(), applying()]).toEqual([[], []]);
});

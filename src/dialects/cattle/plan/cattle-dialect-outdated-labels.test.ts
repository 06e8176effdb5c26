/**
 * Proves that the hash label of a version no longer counts when a Plan returns to this version from another version
 * that was in progress on the node.
 */
import { describe, expect, test } from 'vitest';
import type { CattleSpec } from '../../../../test/support/builders/cattle-plans.ts';
import { beginOnOneNode } from '../../../../test/support/builders/one-node-plan.ts';
import { MINUTE } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';

/** Returns a scene with a node that is done, and with a Job of the later version in progress. */
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
  [
    'if the Job of v2 failed, a node gets v1 again once the Plan returns to v1, and is schedulable after it',
    false,
  ],
  [
    'if the failed Job of v2 is deleted, a node still gets v1 again once the Plan returns to v1',
    true,
  ],
])('%s', async (_name, isLost) => {
  const { look, edit, versions, complete, cordon, isCordoned, fail, lose } = await begin({
    cordon: true,
  });
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

test('so once somebody made the node schedulable: what the failed Job left is not known', async () => {
  const { look, edit, versions, cordon, fail, lose } = await begin({ cordon: true });
  cordon(true);
  fail();
  await look();
  edit({ version: 'v1' });
  lose();
  cordon(false);
  await look(8);
  expect(versions()).toEqual(['v1']);
});

test.each<[string, boolean]>([
  ['the Job of the earlier version fails then', false],
  ['it fails, and is deleted when its time is over', true],
])(
  'if its Job fails after a return to v1, a node has failed until spec.upgrade changes: %s',
  async (_name, isLost) => {
    const { api, look, edit, versions, complete, fail, lose, applying } = await begin();
    edit({ version: 'v1' });
    complete('a');
    await look(8);
    expect(versions()).toEqual(['v1']);
    fail();
    await look();
    if (isLost) await look(2, 16 * MINUTE);
    if (isLost) lose();
    await look(8);
    expect([versions(), applying()]).toEqual([[], ['a']]);
    const told = (api.read<CattlePlan>(cattlePlans, 'plan').status?.conditions ?? []).find(
      ({ type }) => type === 'Complete',
    );
    expect(told).toMatchObject({ status: 'False', reason: 'JobFailed' });
    edit({ version: 'v1', upgrade: { image: 'img', args: ['again'] } });
    await look(8);
    expect(versions()).toEqual(['v1']);
  },
);

test('if the v2 Job is deleted before v1 starts, a node gets v1 again, and is schedulable after it', async () => {
  const { look, edit, versions, complete, cordon, isCordoned, lose, ready } = await begin({
    cordon: true,
  });
  cordon(true);
  edit({ version: 'v1' });
  await look();
  ready('False');
  complete('a');
  await look();
  lose();
  await look();
  ready('True');
  await look(8);
  expect(versions()).toEqual(['v1']);
  complete('a');
  await look();
  expect([versions(), isCordoned()]).toEqual([[], false]);
});

test('a node stays done at v2 if its v2 Job is deleted before its v1 Job', async () => {
  const { look, complete, lose, versions, applying } = await begin();
  complete('a');
  await look();
  lose('v2');
  await look();
  expect([versions(), applying()]).toEqual([[], []]);
});

test('a node keeps its slot until its Job ends, also if a person sets its hash label earlier', async () => {
  const { look, versions, complete, label, applying } = await begin();
  label(true);
  await look();
  expect([versions(), applying()]).toEqual([['v2'], ['a']]);
  complete('a');
  await look();
  expect([versions(), applying()]).toEqual([[], []]);
});

test('a node whose Job failed is done, and stays done, after a person sets its hash label', async () => {
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

describe('a Plan goes back and leaves the node out at once', () => {
  const ELSEWHERE = { nodeSelector: { matchLabels: { role: 'none' } } };

  test.each<[string, 'ends' | 'fails', boolean, boolean]>([
    ['the cordon of a Job that ended well ends', 'ends', false, false],
    ['so once the Job of the earlier version is deleted', 'ends', true, false],
    ['the cordon of a Job that failed stays', 'fails', false, true],
    ['so once the Job of the earlier version is lost', 'fails', true, true],
  ])('%s; once selected again, the node gets the version', async (_name, end, isLost, stays) => {
    const scene = await begin({ cordon: true });
    const { look, edit, versions, cordon, applying, isDone, isCordoned } = scene;
    cordon(true);
    if (end === 'ends') scene.complete('a');
    else scene.fail();
    if (isLost) scene.lose('v1');
    edit({ version: 'v1', ...ELSEWHERE });
    await look(8);
    expect([versions(), applying(), isDone(), isCordoned()]).toEqual([[], [], false, stays]);
    edit({ version: 'v1' });
    await look(8);
    expect(versions()).toEqual(['v1']);
  });
});

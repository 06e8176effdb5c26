/**
 * Proves that Refit never removes a cordon that somebody sets after an upgrade, or while a Job runs that does not
 * cordon.
 */
import { expect, test } from 'vitest';
import { beginOnOneNode as begin } from '../../../../test/support/builders/one-node-plan.ts';

const RESTS = { cordon: true, postCompleteDelay: '5s' };
const AGAIN = { upgrade: { image: 'img', args: ['again'] } };

/** Returns a scene with a node whose first Job cordoned it and failed, and whose second Job is complete. */
async function beginAgain() {
  const scene = await begin(RESTS);
  const { look, edit, complete, cordon, fail, isDone, isCordoned } = scene;
  cordon(true);
  fail();
  await look();
  edit(AGAIN);
  await look(8);
  complete('a');
  await look(20);
  expect([isDone(), isCordoned()]).toEqual([true, false]);
  return scene;
}

test('a cordon that a person sets after a failed and a complete Job stays, and the node stays done', async () => {
  const { look, lose, versions, cordon, isCordoned } = await beginAgain();
  lose();
  await look();
  cordon(true);
  await look();
  expect([versions(), isCordoned()]).toEqual([[], true]);
});

test('so at the next version', async () => {
  const { look, edit, versions, complete, cordon, isCordoned } = await beginAgain();
  cordon(true);
  await look();
  edit({ ...AGAIN, version: 'v2' });
  await look(8);
  expect(versions()).toEqual(['v2']);
  complete('a');
  await look(20);
  expect([versions(), isCordoned()]).toEqual([[], true]);
});

test('after a node was repaired, labelled and made schedulable by hand', async () => {
  const { look, lose, versions, cordon, fail, label, isCordoned } = await begin({ cordon: true });
  cordon(true);
  fail();
  await look();
  label(true);
  cordon(false);
  await look(8);
  lose();
  await look();
  cordon(true);
  await look();
  expect([versions(), isCordoned()]).toEqual([[], true]);
});

test('a cordon set during a Job that does not cordon stays, although the earlier Job cordoned', async () => {
  const { look, edit, versions, complete, cordon, isCordoned } = await begin({ cordon: true });
  cordon(true);
  complete('a');
  await look();
  edit({ version: 'v2', cordon: false });
  await look();
  expect([versions(), isCordoned()]).toEqual([['v2'], false]);
  cordon(true);
  complete('a');
  await look();
  expect(isCordoned()).toBe(true);
});

test('after a Job that failed and does not cordon: the Plan cordons from then on', async () => {
  const { look, edit, versions, complete, cordon, fail, isCordoned } = await begin();
  fail();
  await look();
  cordon(true);
  await look();
  edit({ version: 'v2', cordon: true });
  await look(8);
  expect(versions()).toEqual(['v2']);
  complete('a');
  await look(8);
  expect(isCordoned()).toBe(true);
});

/**
 * Proves that a Job which is deleted after its end is not created again, and that a Job which is deleted before its end
 * is created again.
 */
import { expect, test } from 'vitest';
import { beginOnOneNode as begin } from '../../../../test/support/builders/one-node-plan.ts';
import { MINUTE } from '../../../../test/support/clock/times.ts';

test('a finished Job that is deleted while its node is not Ready is not created again', async () => {
  const { look, made, complete, lose, isDone, ready } = await begin();
  ready('False');
  complete('a');
  await look();
  lose();
  await look();
  expect([made(), isDone()]).toEqual([[], false]);
  ready('True');
  await look();
  expect([made(), isDone()]).toEqual([[], true]);
});

test('a finished Job that is deleted during postCompleteDelay is not created again', async () => {
  const { look, made, complete, lose, isDone } = await begin({ postCompleteDelay: '10m' });
  complete('a');
  await look();
  lose();
  await look();
  expect([made(), isDone()]).toEqual([[], false]);
  await look(2, 10 * MINUTE);
  expect([made(), isDone()]).toEqual([[], true]);
});

test('a node that was not Ready when its finished Job was deleted gets no new Job and loses its cordon', async () => {
  const { look, made, complete, lose, isDone, isCordoned, ready, cordon } = await begin({
    cordon: true,
    postCompleteDelay: '5s',
  });
  cordon(true);
  ready('False');
  complete('a');
  await look();
  lose();
  await look();
  ready('True');
  await look(20);
  expect([made(), isDone(), isCordoned()]).toEqual([[], true, false]);
});

test('its cordon ends, though the Plan does not cordon any more', async () => {
  const { look, complete, lose, edit, isDone, isCordoned, ready, cordon } = await begin({
    cordon: true,
  });
  cordon(true);
  ready('False');
  complete('a');
  await look();
  lose();
  edit({ cordon: false });
  await look();
  ready('True');
  await look(8);
  expect([isDone(), isCordoned()]).toEqual([true, false]);
});

test('the Job of an earlier version lives longer', async () => {
  const { look, complete, lose, edit, versions, ready, applying } = await begin();
  complete('a');
  await look();
  edit({ version: 'v2' });
  await look();
  ready('False');
  complete('a');
  await look();
  lose('v2');
  await look();
  ready('True');
  await look();
  expect([versions(), applying()]).toEqual([[], []]);
});

test('a node that is done gets another Job after a person removes its hash label', async () => {
  const { look, made, complete, lose, isDone, label } = await begin();
  complete('a');
  await look();
  lose();
  await look(4, 20 * MINUTE);
  label(false);
  await look();
  expect([made().length, isDone()]).toEqual([1, false]);
});

test('somebody deletes it while it runs: it is made again', async () => {
  const { look, made, lose } = await begin();
  lose();
  await look();
  expect(made()).toHaveLength(1);
});

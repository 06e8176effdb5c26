/** Shows when the EvictionRequests of drains are withdrawn: before the leader uncordons a node, and at the end of its term. */
import { afterEach, expect, test } from 'vitest';
import { EvictionRequestApi } from '../../test/support/builders/eviction-request-api.ts';
import { PodApi, refuse } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { silentLogger } from '../util/log.ts';
import { requestFor } from './eviction-request-objects.ts';
import { DEFAULT_DRAIN } from './pods.ts';
import { createDrains } from './running-drains.ts';

const POD_A = { uid: '0c5dc5a9-8d5e-4b3f-9a5e-00000000000a' };
const POD_B = { uid: '0c5dc5a9-8d5e-4b3f-9a5e-00000000000b' };
const POD_C = { uid: '0c5dc5a9-8d5e-4b3f-9a5e-00000000000c' };
let endTerm = async (): Promise<void> => await Promise.resolve();

/** Starts the drain of node `n1`, whose pod `a` gets a request. */
async function begin(isUsed: boolean, handsOver = true) {
  const clock = new FakeClock();
  const api = new PodApi();
  const lifecycle = new EvictionRequestApi();
  api.put(buildPod('a', POD_A));
  const drains = createDrains({
    client: lifecycle.over(api.client),
    clock,
    random: () => 0.99,
    log: silentLogger,
    usesRequests: () => isUsed,
    handsOver,
  });
  const stop = new AbortController();
  const term = drains.run(stop.signal);
  endTerm = async () => {
    stop.abort();
    await clock.runUntil(term);
    expect({ watching: api.watching, timers: clock.pending }).toEqual({ watching: 0, timers: 0 });
  };
  drains.begin('n1', 'plan-uid/1', { ...DEFAULT_DRAIN, evictionRequests: true });
  await clock.advance(0);
  expect(lifecycle.requested()).toEqual(['a']);
  return { lifecycle, clock, drains };
}

afterEach(async () => await endTerm());

test('the requests of the ended drain are withdrawn, also if it ended for another cause', async () => {
  const { lifecycle, clock, drains } = await begin(false);
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  lifecycle.beforeDelete = async () => await answered;
  drains.keep(() => false);
  const forgotten = drains.forget('n1').then(() => lifecycle.requested());
  answer();
  expect(await clock.runUntil(forgotten)).toEqual([]);
});

test('those that another leader left for this node are, too, where a policy uses requests', async () => {
  const { lifecycle, clock, drains } = await begin(true);
  for (const [pod, node] of [
    [buildPod('b', POD_B), 'n1'],
    [buildPod('c', POD_C), 'n2'],
  ] as const) {
    const left = requestFor(pod, node);
    lifecycle.requests.set(`default/${left.metadata.name}`, left);
  }
  await clock.runUntil(drains.forget('n1'));
  expect(lifecycle.requested()).toEqual(['c']);
});

test('an API server that does not answer does not hold it up for ever', async () => {
  const { lifecycle, clock, drains } = await begin(true);
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  lifecycle.beforeDelete = async () => await answered;
  let isOver = false;
  const forgotten = drains.forget('n1').then(() => {
    isOver = true;
  });
  await clock.advance(60_000);
  expect(isOver).toBe(true);
  answer();
  await forgotten;
});

test('a list that is refused does not hold it up', async () => {
  const { lifecycle, clock, drains } = await begin(true);
  lifecycle.onList = () => {
    throw refuse({ code: 403, reason: 'Forbidden' });
  };
  await clock.runUntil(drains.forget('n1'));
  expect(lifecycle.requested()).toEqual([]);
});

test.each([
  ['another leader goes on with them', true, ['a']],
  ['no other leader goes on', false, []],
])('at the end of the term, if %s', async (_, handsOver, left) => {
  const { lifecycle } = await begin(true, handsOver);
  await endTerm();
  expect(lifecycle.requested()).toEqual(left);
});

/** Shows that the drains of many nodes share their lists of EvictionRequests. */
import { expect, test } from 'vitest';
import { EvictionRequestApi } from '../../test/support/builders/eviction-request-api.ts';
import { PodApi } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { silentLogger } from '../util/log.ts';
import { DEFAULT_DRAIN } from './pods.ts';
import { createDrains } from './running-drains.ts';

test('ten drains, begun one after the other, list as often as one, and make each request once', async () => {
  const clock = new FakeClock();
  const api = new PodApi();
  const lifecycle = new EvictionRequestApi();
  const client = lifecycle.over(api.client);
  const drains = createDrains({ client, clock, random: () => 0.99, log: silentLogger });
  const stop = new AbortController();
  const term = drains.run(stop.signal);
  for (let index = 0; index < 10; index++) {
    const uid = `0c5dc5a9-8d5e-4b3f-9a5e-00000000000${index}`;
    api.put(buildPod(`p${index}`, { uid, node: `n${index}` }));
    drains.begin(`n${index}`, 'plan-uid/1', { ...DEFAULT_DRAIN, evictionRequests: true });
    await clock.advance(400);
  }
  await clock.advance(20_000);
  const count = (what: string): number =>
    lifecycle.calls.filter((call) => call.startsWith(what)).length;
  expect(count('list evictionrequests')).toBeLessThanOrEqual(5);
  expect(count('list evictions')).toBeLessThanOrEqual(5);
  expect(count('create')).toBe(10);
  stop.abort();
  await clock.runUntil(term);
});

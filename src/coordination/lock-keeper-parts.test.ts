/** Tests that the keeper does not keep a part of a lock that has several parts, such as the locks of several Kured. */
import { expect, onTestFinished, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { later, SECOND, T0 } from '../../test/support/clock/times.ts';
import { daemonSets, type KubeObject } from '../kube/resources.ts';
import { createLockKeeper } from './lock-keeper.ts';

const KEY = 'weave.works/kured-node-lock';
const OURS = 'refit/table';
const LOOK_MS = 10 * SECOND;

function kured(name: string, holder?: string): KubeObject {
  const lock = { nodeID: holder, created: later(0), TTL: 300_000_000_000 };
  const annotations = holder === undefined ? {} : { [KEY]: JSON.stringify(lock) };
  const containers = [{ command: ['/usr/bin/kured'], args: [`--ds-name=${name}`] }];
  const spec = { template: { spec: { containers } } };
  return { metadata: { namespace: 'kube-system', name, annotations }, spec } as KubeObject;
}

function scene(first: string | undefined, second: string | undefined) {
  const api = new MemoryApi();
  api.put(daemonSets, kured('a', first));
  api.put(daemonSets, kured('b', second));
  const clock = new FakeClock(T0);
  const keeper = createLockKeeper({ client: api.client, clock, holder: OURS });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const ended = keeper.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await ended;
  };
  const holders = (): unknown[] =>
    ['a', 'b'].map((name) => {
      const text = api.read(daemonSets, name).metadata.annotations?.[KEY];
      return text === undefined ? undefined : (JSON.parse(text) as { nodeID: string }).nodeID;
    });
  return { api, clock, keeper, end, holders };
}

test('a part of the lock is released while somebody else holds another part', async () => {
  const { clock, keeper, holders } = scene(OURS, 'w1');
  keeper.follow('plan', ['Kured'], 'at-work');
  await clock.advance(0);
  expect(holders()).toEqual([undefined, 'w1']);
  expect(keeper.locks()).toMatchObject([{ isOurs: false, others: [{ tool: 'Kured' }] }]);
});

test('a part of the lock that a former leader left is released if no plan needs it', async () => {
  const { clock, keeper, holders } = scene(OURS, undefined);
  keeper.follow('plan', ['Kured'], 'waits');
  await clock.advance(LOOK_MS);
  expect(holders()).toEqual([undefined, undefined]);
});

test('a part of the lock is completed if nobody else holds the rest', async () => {
  const { clock, keeper, holders } = scene(OURS, undefined);
  keeper.follow('plan', ['Kured'], 'at-work');
  await clock.advance(0);
  expect(holders()).toEqual([OURS, OURS]);
});

test('a part of the lock that could not be released before is released at the end of the term', async () => {
  const { api, clock, keeper, end, holders } = scene(OURS, undefined);
  let isRefused = true;
  api.before('patch daemonsets/a', () => {
    if (isRefused) throw refusal(403, 'Forbidden');
  });
  keeper.follow('plan', ['Kured'], 'waits');
  await clock.advance(0);
  expect(holders()).toEqual([OURS, undefined]);
  isRefused = false;
  await end();
  expect(holders()).toEqual([undefined, undefined]);
});

/** Tests when the keeper keeps a part of a lock that has several parts, such as the locks of several Kured. */
import { expect, onTestFinished, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { later, MINUTE, SECOND, T0 } from '../../test/support/clock/times.ts';
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
  const locks = () =>
    ['a', 'b'].map((name) => {
      const text = api.has(daemonSets, name)
        ? api.read(daemonSets, name).metadata.annotations?.[KEY]
        : '{"nodeID":"no Kured"}';
      return text === undefined
        ? undefined
        : (JSON.parse(text) as { nodeID: string; created: string });
    });
  const holders = (): unknown[] => locks().map((lock) => lock?.nodeID);
  const renewals = (): (string | undefined)[] => locks().map((lock) => lock?.created);
  return { api, clock, keeper, end, holders, renewals };
}

test('a part of the lock stays, and is renewed, while nodes are in progress and somebody else holds another part', async () => {
  const { clock, keeper, holders, renewals } = scene(OURS, 'w1');
  keeper.follow('plan', ['Kured'], 'at-work');
  await clock.advance(0);
  expect(holders()).toEqual([OURS, 'w1']);
  expect(keeper.locks()).toMatchObject([{ isOurs: false, others: [{ tool: 'Kured' }] }]);
  await clock.advance(2 * MINUTE);
  expect(holders()).toEqual([OURS, 'w1']);
  expect(Date.parse(renewals()[0] ?? '')).toBeGreaterThan(T0 + MINUTE);
});

test('a Kured that is installed while nodes are in progress does not cost Refit the lock of the other one', async () => {
  const { api, clock, keeper, holders } = scene(undefined, undefined);
  api.remove(daemonSets, 'b');
  keeper.follow('plan', ['Kured'], 'at-work');
  await clock.advance(0);
  expect(holders()).toEqual([OURS, 'no Kured']);
  api.put(daemonSets, kured('b', 'w1'));
  await clock.advance(LOOK_MS);
  expect(holders()).toEqual([OURS, 'w1']);
  expect(keeper.locks()).toMatchObject([{ isOurs: false }]);
});

test('a lock that Refit held before stays if another Kured refuses its lock', async () => {
  const { api, clock, keeper, holders } = scene(OURS, undefined);
  for (let look = 0; look < 3; look++)
    api.before('patch daemonsets/b', () => {
      throw refusal(403, 'Forbidden');
    });
  keeper.follow('plan', ['Kured'], 'at-work');
  await clock.advance(LOOK_MS);
  expect(holders()).toEqual([OURS, undefined]);
});

test('a part of the lock that a former leader left is released when no plan has asked for it for a minute', async () => {
  const { clock, keeper, holders } = scene(OURS, undefined);
  keeper.follow('plan', ['Kured'], 'waits');
  await clock.advance(LOOK_MS);
  expect(holders()).toEqual([OURS, undefined]);
  await clock.advance(MINUTE);
  expect(holders()).toEqual([undefined, undefined]);
});

test('a part of the lock is released, even if the last plan ends meanwhile', async () => {
  const { clock, keeper, holders } = scene(OURS, undefined);
  keeper.follow('plan', ['Kured'], 'waits');
  await clock.advance(LOOK_MS);
  keeper.follow('plan', ['Kured'], 'over');
  await clock.advance(2 * MINUTE);
  expect(holders()).toEqual([undefined, undefined]);
});

test('a new plan gets no answer that is older than its need', async () => {
  const { api, clock, keeper } = scene(undefined, undefined);
  api.remove(daemonSets, 'a');
  api.remove(daemonSets, 'b');
  keeper.follow('plan', ['Kured'], 'at-work');
  await clock.advance(0);
  expect(keeper.locks()).toMatchObject([{ isOurs: true }]);
  keeper.follow('plan', ['Kured'], 'over');
  api.put(daemonSets, kured('a', 'w1'));
  keeper.follow('next', ['Kured'], 'at-work');
  expect(keeper.locks()).toEqual([]);
  await clock.advance(0);
  expect(keeper.locks()).toMatchObject([{ isOurs: false, others: [{ tool: 'Kured' }] }]);
});

test('a part of the lock is completed if nobody else holds the rest', async () => {
  const { clock, keeper, holders } = scene(OURS, undefined);
  keeper.follow('plan', ['Kured'], 'at-work');
  await clock.advance(0);
  expect(holders()).toEqual([OURS, OURS]);
});

test('a part of the lock is left to the next leader if the term ends before plans can have asked for it', async () => {
  const { clock, keeper, end, holders } = scene(OURS, undefined);
  keeper.follow('plan', ['Kured'], 'waits');
  await clock.advance(0);
  await end();
  expect(holders()).toEqual([OURS, undefined]);
});

test('a part that a failed take leaves behind is released, even if the plan ends before the next check', async () => {
  const { api, clock, keeper, holders } = scene(undefined, undefined);
  api.before('patch daemonsets/b', () => {
    // The look that follows the refusal finds no API server.
    api.before('list daemonsets', () => {
      throw refusal(503, 'ServiceUnavailable');
    });
    throw refusal(403, 'Forbidden');
  });
  keeper.follow('plan', ['Kured'], 'at-work');
  await clock.advance(0);
  expect(holders()).toEqual([OURS, undefined]);
  keeper.follow('plan', ['Kured'], 'over');
  await clock.advance(2 * MINUTE);
  expect(holders()).toEqual([undefined, undefined]);
});

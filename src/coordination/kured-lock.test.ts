/** Kured's lock, as Kured writes it, and the reader that looks at it. */
import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { later, MINUTE, T0 } from '../../test/support/clock/times.ts';
import { daemonSets } from '../kube/resources.ts';
import { kuredLocks } from './kured-lock.ts';
import { createLockKeeper } from './lock-keeper.ts';

const KEY = 'weave.works/kured-node-lock';
const HOUR_NS = 3_600_000_000_000;
const lock = (nodeID: string, TTL: number, created = later(0)) => ({
  nodeID,
  metadata: { unschedulable: false },
  created,
  TTL,
});
const held = (node: string) => `Kured holds its lock for ${node}`;

test.each<[string, unknown, string[]]>([
  ['without a TTL', lock('w1', 0), [held('w1')]],
  ['with a TTL', lock('w1', HOUR_NS), [held('w1')]],
  ['that has lapsed', lock('w1', HOUR_NS, later(-60 * MINUTE)), []],
  [
    'of several nodes',
    { maxOwners: 2, locks: [lock('w1', 0), lock('w2', 0)] },
    [held('w1'), held('w2')],
  ],
  [
    'of several nodes, one of which has lapsed',
    { maxOwners: 2, locks: [lock('w1', 1, later(-1)), lock('w2', 0)] },
    [held('w2')],
  ],
  ['of nobody any more', { maxOwners: 2, locks: null }, []],
  ['without a time', { nodeID: 'w1' }, [held('w1')]],
  ['that is no lock', 'w1', [held('an unknown node')]],
])('a lock %s', (_title, value, expected) => {
  const found = kuredLocks({ [KEY]: JSON.stringify(value) }, T0);
  expect(found.map(({ message }) => message)).toEqual(expected);
});

test('without the annotation, and with a text that is no JSON', () => {
  expect(kuredLocks(undefined, T0)).toEqual([]);
  expect(kuredLocks({ [KEY]: '{' }, T0)).toHaveLength(1);
});

test('the reader looks every 10 s while a plan is followed, and tells changes only', async () => {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  const reader = createLockKeeper({ client: api.client, clock, holder: 'refit/table' });
  const stop = new AbortController();
  let changes = 0;
  reader.onChange(() => changes++);
  void reader.run(stop.signal);
  expect(reader.locks()).toEqual([]);
  reader.follow('a', ['Kured'], 'waits');
  reader.follow('a', ['Kured'], 'waits');
  await clock.advance(0);
  expect([reader.locks(), changes]).toEqual([[{ tool: 'Kured', others: [] }], 1]);
  api.put(daemonSets, {
    metadata: { name: 'kured', annotations: { [KEY]: JSON.stringify(lock('w1', 0)) } },
  });
  await clock.advance(10_000);
  expect([reader.locks(), changes]).toMatchObject([[{ others: [{ message: held('w1') }] }], 2]);
  api.before('get daemonsets/kured', () => {
    throw refusal(403, 'Forbidden');
  });
  await clock.advance(10_000);
  expect(reader.locks()).toMatchObject([
    {
      others: [
        { message: expect.stringMatching(/^the lock of Kured cannot be read: .*Forb/) as string },
      ],
    },
  ]);
  reader.forget('a');
  const calls = api.calls.length;
  await clock.advance(60_000);
  expect([api.calls.length, reader.locks()]).toEqual([calls, []]);
  stop.abort();
});

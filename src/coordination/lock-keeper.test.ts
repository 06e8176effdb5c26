/**
 * Tests how often the keeper of the locks asks the API server, whom it tells about changes, and how its terms begin and
 * end.
 */
import { expect, onTestFinished, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock, settle } from '../../test/support/clock/fake-clock.ts';
import { later, MINUTE, SECOND, T0 } from '../../test/support/clock/times.ts';
import { daemonSets, type KubeObject, type Lease, leases } from '../kube/resources.ts';
import { microTime } from '../util/clock.ts';
import { createLockKeeper } from './lock-keeper.ts';
import type { LockClient } from './tool.ts';

const OURS = 'refit/table';
const LEASE = ['DisruptionLease'] as const;
const LOOK_MS = 10 * SECOND;
const READ = 'get leases/disruption';

function leaseOf(holderIdentity: string, renewedAt = T0): Lease {
  const times = { acquireTime: microTime(renewedAt), renewTime: microTime(renewedAt) };
  return {
    metadata: { namespace: 'refit-system', name: 'disruption', uid: 'lease-uid' },
    spec: { holderIdentity, leaseDurationSeconds: 300, ...times },
  };
}

function scene({ lease, wrap }: { lease?: Lease; wrap?: (client: LockClient) => LockClient } = {}) {
  const api = new MemoryApi();
  if (lease) api.put(leases, lease);
  const clock = new FakeClock(T0);
  const client = wrap?.(api.client) ?? api.client;
  const keeper = createLockKeeper({ client, clock, holder: OURS });
  let changes = 0;
  keeper.onChange(() => changes++);
  /** Begins a term. The returned function ends it. */
  const begin = (): (() => Promise<void>) => {
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const ended = keeper.run(stop.signal);
    return async () => {
      stop.abort();
      await ended;
    };
  };
  /** Returns the number of requests that `work` causes. */
  const requestsOf = async (work: () => void): Promise<number> => {
    const before = api.calls.length;
    work();
    await clock.advance(0);
    return api.calls.length - before;
  };
  const holder = (): string | undefined => api.read(leases, 'disruption').spec?.holderIdentity;
  return { api, clock, keeper, begin, requestsOf, holder, changes: () => changes };
}

test('a plan that reports the same need again causes no request', async () => {
  const { keeper, begin, requestsOf } = scene({ lease: leaseOf('patcher') });
  begin();
  for (const need of ['waits', 'at-work'] as const) {
    expect(await requestsOf(() => keeper.follow('a', LEASE, need))).toBe(1);
    expect(await requestsOf(() => keeper.follow('a', LEASE, need))).toBe(0);
  }
  expect(await requestsOf(() => keeper.follow('a', LEASE, 'waits'))).toBe(0);
});

test('while Refit holds the lock, a new plan only reads it, and a node that starts causes no request', async () => {
  const { keeper, begin, requestsOf, holder } = scene();
  begin();
  await requestsOf(() => keeper.follow('a', LEASE, 'at-work'));
  expect(holder()).toBe(OURS);
  expect(await requestsOf(() => keeper.follow('b', LEASE, 'waits'))).toBe(1);
  expect(await requestsOf(() => keeper.follow('b', LEASE, 'at-work'))).toBe(0);
});

test('a listener hears of a lock that changes, and of nothing else', async () => {
  const { api, clock, keeper, begin, changes } = scene();
  begin();
  keeper.follow('a', LEASE, 'waits');
  await clock.advance(6 * LOOK_MS);
  expect(changes()).toBe(1);
  api.put(leases, leaseOf('patcher'));
  await clock.advance(6 * LOOK_MS);
  expect(changes()).toBe(2);
});

test('a listener hears that the lock is being released before the answer arrives', async () => {
  const { api, clock, keeper, begin } = scene();
  begin();
  keeper.follow('a', LEASE, 'at-work');
  await clock.advance(0);
  keeper.follow('a', LEASE, 'waits');
  const heard: unknown[] = [];
  keeper.onChange(() => heard.push(keeper.locks()[0]?.isOurs));
  let heardBeforeAnswer: number | undefined;
  api.before('replace leases/disruption', () => {
    heardBeforeAnswer = heard.length;
  });
  await clock.advance(LOOK_MS);
  expect(heardBeforeAnswer).toBe(1);
  expect(heard).toEqual([false]);
});

test('a lock that Refit holds is renewed once a minute', async () => {
  const { api, clock, keeper, begin } = scene();
  begin();
  keeper.follow('a', LEASE, 'at-work');
  await clock.advance(5 * MINUTE);
  const renewals = api.calls.filter((call) => call === 'replace leases/disruption');
  expect(renewals).toHaveLength(5);
});

test('a lock that Refit renewed before its clock was set back is renewed at once', async () => {
  const { api, clock, keeper, begin } = scene();
  begin();
  keeper.follow('a', LEASE, 'at-work');
  await clock.advance(0);
  clock.setBack(30 * MINUTE);
  await clock.advance(LOOK_MS);
  const { renewTime } = api.read(leases, 'disruption').spec ?? {};
  expect(renewTime).toBe(microTime(clock.now()));
  await clock.advance(5 * LOOK_MS);
  const renewals = api.calls.filter((call) => call === 'replace leases/disruption');
  expect(renewals).toHaveLength(1);
});

test('a plan that is forgotten leaves the checks of the other plans as they are', async () => {
  const { api, clock, keeper, begin } = scene();
  begin();
  keeper.follow('a', LEASE, 'waits');
  keeper.follow('b', LEASE, 'waits');
  await clock.advance(0);
  keeper.forget('a');
  keeper.forget('unknown');
  expect(keeper.locks()).toHaveLength(1);
  const before = api.calls.length;
  await clock.advance(LOOK_MS);
  expect(api.calls.slice(before)).toEqual([READ]);
});

test('a plan that is forgotten before the first answer leaves no lock behind', async () => {
  const { clock, keeper, begin, requestsOf } = scene();
  begin();
  keeper.follow('a', LEASE, 'waits');
  keeper.forget('a');
  await clock.advance(MINUTE);
  expect(keeper.locks()).toEqual([]);
  expect(await requestsOf(() => keeper.follow('a', LEASE, 'waits'))).toBe(1);
});

test('a plan that has ended causes one check of each term, which releases the lock of a former leader', async () => {
  const { clock, keeper, begin, requestsOf, holder } = scene({ lease: leaseOf(OURS) });
  const end = begin();
  expect(await requestsOf(() => keeper.follow('a', LEASE, 'over'))).toBe(1);
  expect(await requestsOf(() => keeper.follow('a', LEASE, 'over'))).toBe(0);
  expect(keeper.locks()).toEqual([]);
  await clock.advance(MINUTE - LOOK_MS);
  expect(holder()).toBe(OURS);
  await clock.advance(LOOK_MS);
  expect(holder()).toBe('');
  expect(await requestsOf(() => keeper.follow('a', LEASE, 'over'))).toBe(0);
  await end();
  begin();
  expect(await requestsOf(() => keeper.follow('a', LEASE, 'over'))).toBe(1);
});

test('a plan that is followed before the term begins is checked when the term begins', async () => {
  const { clock, keeper, begin, requestsOf } = scene();
  expect(await requestsOf(() => keeper.follow('a', LEASE, 'waits'))).toBe(0);
  expect(keeper.locks()).toEqual([]);
  expect(await requestsOf(() => void begin())).toBe(1);
  await clock.advance(0);
  expect(keeper.locks()).toHaveLength(1);
});

test('a new term forgets the plans of the old term, and keeps a lock for a minute', async () => {
  const { clock, keeper, begin, requestsOf, holder } = scene();
  const end = begin();
  await requestsOf(() => keeper.follow('a', LEASE, 'at-work'));
  await end();
  expect(holder()).toBe(OURS);
  expect(await requestsOf(() => void begin())).toBe(0);
  await requestsOf(() => keeper.follow('b', LEASE, 'waits'));
  await clock.advance(MINUTE - LOOK_MS);
  expect(holder()).toBe(OURS);
  await clock.advance(LOOK_MS);
  expect(holder()).toBe('');
});

test('a term that ends without a lock causes no request', async () => {
  const { api, keeper, begin, requestsOf } = scene();
  const end = begin();
  await requestsOf(() => keeper.follow('a', LEASE, 'waits'));
  const before = api.calls.length;
  await end();
  expect(api.calls.length).toBe(before);
});

test('a term can end although the API server is away', async () => {
  const { api, keeper, begin, requestsOf, holder } = scene();
  const end = begin();
  await requestsOf(() => keeper.follow('a', LEASE, 'at-work'));
  keeper.follow('a', LEASE, 'over');
  api.before(READ, () => {
    throw refusal(503, 'ServiceUnavailable');
  });
  await end();
  expect(holder()).toBe(OURS);
});

const KURED_LOCK = 'weave.works/kured-node-lock';

function kured(lock?: object): KubeObject {
  const annotations = lock ? { [KURED_LOCK]: JSON.stringify(lock) } : {};
  return { metadata: { namespace: 'kube-system', name: 'kured', annotations } };
}

test('a term that ends leaves a lock alone that Kured has taken meanwhile', async () => {
  const { api, keeper, begin, requestsOf } = scene();
  const end = begin();
  api.put(daemonSets, kured());
  await requestsOf(() => keeper.follow('a', ['Kured'], 'at-work'));
  keeper.follow('a', ['Kured'], 'over');
  api.put(daemonSets, kured({ nodeID: 'w1', created: later(-2), TTL: 1 }));
  const before = api.calls.length;
  await end();
  expect(api.calls.slice(before)).toEqual(['list daemonsets']);
});

test('without Kured, plans and terms can end', async () => {
  const { clock, keeper, begin, requestsOf } = scene();
  const end = begin();
  await requestsOf(() => keeper.follow('a', ['Kured'], 'at-work'));
  await requestsOf(() => keeper.follow('a', ['Kured'], 'waits'));
  await clock.advance(2 * MINUTE);
  expect(keeper.locks()[0]).not.toHaveProperty('problem');
  await requestsOf(() => keeper.follow('a', ['Kured'], 'at-work'));
  expect(keeper.locks()).toMatchObject([{ others: [], isOurs: true }]);
  keeper.follow('a', ['Kured'], 'over');
  await expect(end()).resolves.toBeUndefined();
});

/** Returns a client whose reads of the Lease wait for a call of `answer`. `atOnce` are the reads that wait now. */
function slowReads() {
  const waiting: (() => void)[] = [];
  const aborts: (AbortSignal | undefined)[] = [];
  const wrap = (client: LockClient): LockClient => ({
    ...client,
    get: async (resource, name, options) => {
      aborts.push(options?.abort);
      await new Promise<void>((resolve) => waiting.push(resolve));
      return await client.get(resource, name, options);
    },
  });
  const answer = async (): Promise<void> => {
    waiting.shift()?.();
    await settle();
  };
  return { wrap, answer, aborts, atOnce: () => waiting.length };
}

test('two checks of a lock never run at the same time, and the second follows the first', async () => {
  const { wrap, answer, atOnce } = slowReads();
  const { clock, keeper, begin } = scene({ wrap });
  begin();
  keeper.follow('a', LEASE, 'waits');
  keeper.follow('b', LEASE, 'waits');
  keeper.follow('c', LEASE, 'waits');
  await clock.advance(MINUTE);
  expect(atOnce()).toBe(1);
  await answer();
  expect(atOnce()).toBe(1);
  await answer();
  expect(atOnce()).toBe(0);
  await clock.advance(LOOK_MS);
  expect(atOnce()).toBe(1);
});

test('the answer to a check of an ended term changes nothing, and the new term checks the lock itself', async () => {
  const { wrap, answer, atOnce, aborts } = slowReads();
  const { api, keeper, begin, changes } = scene({ wrap, lease: leaseOf('patcher') });
  const end = begin();
  keeper.follow('a', LEASE, 'waits');
  await end();
  expect(aborts.map((abort) => abort?.aborted)).toEqual([true]);
  begin();
  keeper.follow('b', LEASE, 'waits');
  expect(atOnce()).toBe(1);
  await answer();
  expect([keeper.locks(), changes()]).toEqual([[], 0]);
  expect([atOnce(), aborts.at(-1)?.aborted]).toEqual([1, false]);
  api.put(leases, leaseOf(''));
  await answer();
  expect(keeper.locks()).toEqual([{ tool: 'DisruptionLease', others: [], isOurs: false }]);
});

test.each([
  ['without a new term', false],
  ['with a new term that has no plan', true],
])('the answer to a check of an ended term causes no further check %s', async (_title, isNew) => {
  const { wrap, answer, atOnce } = slowReads();
  const { clock, keeper, begin } = scene({ wrap });
  const end = begin();
  keeper.follow('a', LEASE, 'waits');
  await end();
  if (isNew) begin();
  else keeper.follow('b', LEASE, 'waits');
  await answer();
  await clock.advance(MINUTE);
  expect(atOnce()).toBe(0);
});

test('a lock of somebody else expires at the end of its duration, counted from the first check', async () => {
  const { clock, keeper, begin, holder } = scene({ lease: leaseOf('patcher') });
  begin();
  await clock.advance(7 * MINUTE);
  keeper.follow('a', LEASE, 'at-work');
  await clock.advance(5 * MINUTE - LOOK_MS);
  expect(holder()).toBe('patcher');
  await clock.advance(LOOK_MS);
  expect(holder()).toBe(OURS);
});

test('after a conflict, the lock is checked again after a second, without a problem for the user', async () => {
  const { api, clock, keeper, begin, holder } = scene();
  begin();
  api.before('create leases/disruption', () => {
    throw refusal(409, 'AlreadyExists');
  });
  keeper.follow('a', LEASE, 'at-work');
  await clock.advance(0);
  expect(keeper.locks()).toEqual([{ tool: 'DisruptionLease', others: [], isOurs: false }]);
  await clock.advance(SECOND);
  expect(holder()).toBe(OURS);
});

test('a refusal is a problem, and the lock is checked again after the usual time', async () => {
  const { api, clock, keeper, begin } = scene();
  begin();
  api.before('create leases/disruption', () => {
    throw refusal(403, 'Forbidden');
  });
  keeper.follow('a', LEASE, 'at-work');
  await clock.advance(LOOK_MS - SECOND);
  const problem = 'Forbidden by the test';
  expect(keeper.locks()).toEqual([{ tool: 'DisruptionLease', others: [], isOurs: false, problem }]);
  await clock.advance(SECOND);
  expect(keeper.locks()).toEqual([{ tool: 'DisruptionLease', others: [], isOurs: true }]);
});

test('a lock that a quota refuses is not told as one for which a right is missing', async () => {
  const { api, clock, keeper, begin } = scene();
  begin();
  const message = 'leases "x" is forbidden: exceeded quota: few';
  api.before('create leases/disruption', () => {
    throw refusal(403, 'Forbidden', message);
  });
  keeper.follow('a', LEASE, 'at-work');
  await clock.advance(0);
  expect(keeper.locks()).toMatchObject([{ problem: message, isBarred: true }]);
});

test.each([
  ['DisruptionLease', READ, 'Lease refit-system/disruption'],
  ['Kured', 'list daemonsets', 'the DaemonSets of all namespaces, among which Refit finds Kured'],
] as const)(
  'a lock of %s that cannot be read names the right that is missing',
  async (tool, call, place) => {
    const { api, clock, keeper, begin } = scene();
    begin();
    api.before(call, () => {
      throw refusal(500, 'InternalError');
    });
    keeper.follow('a', [tool], 'waits');
    await clock.advance(0);
    const ends = `the API server lets Refit read ${place}`;
    expect(keeper.locks()).toMatchObject([{ tool, others: [{ tool, ends }] }]);
  },
);

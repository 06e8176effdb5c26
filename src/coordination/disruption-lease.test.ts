/**
 * Tests the Lease that lets disruptive tools work one after the other: who holds it, and how Refit acquires, renews and
 * releases it.
 */
import { expect, onTestFinished, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { T0 } from '../../test/support/clock/times.ts';
import { type Lease, leases } from '../kube/resources.ts';
import { microTime } from '../util/clock.ts';
import { disruptionLease } from './disruption-lease.ts';
import { isHolderFor, lockHolder } from './lock-holder.ts';
import { createLockKeeper, type LockNeed } from './lock-keeper.ts';

const PLACE = { namespace: 'refit-system', name: 'disruption' };
const OURS = 'refit/table';
const TOOLS = ['DisruptionLease'] as const;
const LOOK_MS = 10_000;
const LASTS_MS = 300_000;
const TITLE = 'Lease refit-system/disruption';

const heldBy = (holderIdentity: string, more: Lease['spec'] = {}): Lease => ({
  metadata: { ...PLACE, uid: 'lease-uid' },
  spec: {
    holderIdentity,
    leaseDurationSeconds: 60,
    acquireTime: microTime(T0),
    renewTime: microTime(T0),
    ...more,
  },
});

function scene(api = new MemoryApi(), clock = new FakeClock(T0)) {
  const keeper = createLockKeeper({ client: api.client, clock, holder: OURS });
  const stop = new AbortController();
  let changes = 0;
  keeper.onChange(() => changes++);
  const ended = keeper.run(stop.signal);
  onTestFinished(() => stop.abort());
  const follow = async (need: LockNeed, plan = 'a'): Promise<void> => {
    keeper.follow(plan, TOOLS, need);
    await clock.advance(0);
  };
  const end = async (): Promise<void> => {
    stop.abort();
    await ended;
  };
  const lease = (): Lease['spec'] => api.read(leases, PLACE.name).spec;
  const writes = (): string[] => api.calls.filter((call) => !call.startsWith('get '));
  return { api, clock, keeper, follow, end, lease, writes, changes: () => changes };
}

test.each<[string, Lease | undefined, string[]]>([
  ['that does not exist', undefined, []],
  ['without a holder', heldBy(''), []],
  ['of Refit', heldBy(OURS), []],
  ['of another', heldBy('patcher'), [`${TITLE} is held by patcher since 2026-`]],
  [
    'that never expires',
    heldBy('patcher', { leaseDurationSeconds: undefined, renewTime: undefined } as never),
    [`${TITLE} is held by patcher since 2026-`],
  ],
  ['that has expired', heldBy('patcher', { renewTime: microTime(T0 - 60_000) }), []],
  ['of a holder with control characters', heldBy('a\u001bb'), [`${TITLE} is held by a`]],
])('a Lease %s', async (_title, lease, expected) => {
  const api = new MemoryApi();
  if (lease) api.put(leases, lease);
  const { others } = await disruptionLease.look(api.client, {
    holder: OURS,
    isOwn: (holder) => holder === OURS,
    now: T0,
    ageOf: (_renewal, written) => (written === undefined ? 0 : T0 - Date.parse(written)),
  });
  expect(others).toHaveLength(expected.length);
  for (const [index, text] of expected.entries()) {
    expect(others[index]?.message).toContain(text);
    expect(others[index]?.message).not.toContain('\u001b');
  }
});

test('the Lease is taken for the first plan with nodes in progress, renewed, and given back after the last one', async () => {
  const { clock, keeper, follow, lease, writes } = scene();
  await follow('waits');
  expect(keeper.locks()).toEqual([{ tool: 'DisruptionLease', others: [], isOurs: false }]);
  expect(writes()).toEqual([]);
  await follow('at-work');
  await follow('at-work', 'b');
  expect(keeper.locks()).toMatchObject([{ isOurs: true }]);
  expect(lease()).toMatchObject({ holderIdentity: OURS, leaseDurationSeconds: LASTS_MS / 1000 });
  const { acquireTime, renewTime } = lease() ?? {};
  await clock.advance(LASTS_MS);
  expect(lease()).toMatchObject({ holderIdentity: OURS, acquireTime, leaseTransitions: 0 });
  expect(lease()?.renewTime).not.toBe(renewTime);
  await follow('over');
  await clock.advance(2 * LOOK_MS);
  expect(lease()).toMatchObject({ holderIdentity: OURS });
  await follow('waits', 'b');
  await clock.advance(LOOK_MS);
  expect(lease()).toMatchObject({ holderIdentity: '' });
  expect(keeper.locks()).toMatchObject([{ isOurs: false }]);
});

test('the Lease of another is left alone, and taken once it is free', async () => {
  const { api, clock, keeper, follow, lease, writes } = scene();
  api.put(leases, heldBy('patcher', { leaseDurationSeconds: 3600 }));
  await follow('at-work');
  await clock.advance(6 * LOOK_MS);
  expect(keeper.locks()).toMatchObject([{ isOurs: false, others: [{ tool: 'DisruptionLease' }] }]);
  expect(writes()).toEqual([]);
  api.put(leases, heldBy(''));
  await clock.advance(LOOK_MS);
  expect(keeper.locks()).toMatchObject([{ isOurs: true, others: [] }]);
  expect(lease()?.holderIdentity).toBe(OURS);
});

test('the Lease of another expires by the clock of Refit, whatever its holder wrote', async () => {
  const { api, clock, follow, lease } = scene();
  api.put(leases, heldBy('patcher', { renewTime: microTime(T0 - 999_999_999) }));
  await follow('at-work');
  await clock.advance(5 * LOOK_MS);
  expect(lease()?.holderIdentity).toBe('patcher');
  await clock.advance(LOOK_MS);
  expect(lease()?.holderIdentity).toBe(OURS);
});

test('somebody who takes the Lease at the same moment wins', async () => {
  const { api, clock, keeper, follow, lease } = scene();
  api.put(leases, heldBy(''));
  api.before('replace leases/disruption', () =>
    api.change(leases, PLACE.name, (now) => ({
      ...now,
      ...heldBy('patcher'),
      metadata: now.metadata,
    })),
  );
  await follow('at-work');
  await clock.advance(1_000);
  expect(lease()?.holderIdentity).toBe('patcher');
  expect(keeper.locks()).toMatchObject([{ isOurs: false, others: [{}] }]);
});

test('the next leader keeps the Lease of the former one, and gives it back if no plan needs it', async () => {
  const former = scene();
  await former.follow('at-work');
  await former.end();
  expect(former.lease()?.holderIdentity).toBe(OURS);

  const next = scene(former.api, former.clock);
  await next.follow('over');
  await next.follow('at-work', 'b');
  expect(next.keeper.locks()).toMatchObject([{ isOurs: true }]);
  await next.clock.advance(6 * LOOK_MS);
  expect(next.lease()).toMatchObject({ holderIdentity: OURS, leaseTransitions: 0 });
  await next.end();

  const last = scene(former.api, former.clock);
  last.api.before('get leases/disruption', () => {
    throw refusal(503, 'ServiceUnavailable');
  });
  await last.follow('over');
  await last.follow('waits');
  await last.clock.advance(LOOK_MS);
  await last.follow('over');
  await last.clock.advance(7 * LOOK_MS);
  expect(last.lease()?.holderIdentity).toBe('');
  const calls = last.api.calls.length;
  await last.clock.advance(LASTS_MS);
  expect(last.api.calls.length).toBe(calls);
});

test('the Lease of a former leader stays until all plans had time to say what they need', async () => {
  const former = scene();
  await former.follow('at-work');
  await former.end();

  const next = scene(former.api, former.clock);
  for (const plan of ['b', 'c', 'd']) next.keeper.follow(plan, TOOLS, 'waits');
  await next.clock.advance(2 * LOOK_MS);
  expect(next.lease()?.holderIdentity).toBe(OURS);
  await next.end();
  expect(next.lease()?.holderIdentity).toBe(OURS);
});

test('a node that is due while the Lease is being given back waits until it is taken again', async () => {
  const { api, clock, keeper, follow, lease } = scene();
  await follow('at-work');
  await follow('waits');
  let seen: unknown;
  api.before('replace leases/disruption', () => {
    keeper.follow('a', TOOLS, 'at-work');
    seen = keeper.locks();
  });
  await clock.advance(LOOK_MS);
  expect(seen).toMatchObject([{ isOurs: false }]);
  await clock.advance(0);
  expect(keeper.locks()).toMatchObject([{ isOurs: true }]);
  expect(lease()?.holderIdentity).toBe(OURS);
});

test('a Lease that Refit could not renew before it expired is not its own any more', async () => {
  const { api, clock, keeper, follow } = scene();
  await follow('at-work');
  const refuse = (): never => {
    api.before('replace leases/disruption', refuse);
    throw refusal(403, 'Forbidden');
  };
  api.before('replace leases/disruption', refuse);
  await clock.advance(LASTS_MS - LOOK_MS);
  const problem = expect.stringContaining('Forbidden') as string;
  expect(keeper.locks()).toMatchObject([{ isOurs: true, problem }]);
  await clock.advance(LOOK_MS);
  expect(keeper.locks()).toMatchObject([{ isOurs: false, problem }]);
});

test('a process that ends gives back a Lease that no plan needs', async () => {
  const { follow, end, lease } = scene();
  await follow('at-work');
  await follow('over');
  await end();
  expect(lease()?.holderIdentity).toBe('');
});

test('a Lease that cannot be taken, and one that cannot be read', async () => {
  const { api, clock, keeper, follow } = scene();
  const refuse = (): never => {
    throw refusal(403, 'Forbidden');
  };
  api.before('create leases/disruption', refuse);
  await follow('at-work');
  expect(keeper.locks()).toMatchObject([
    { isOurs: false, others: [], problem: expect.stringContaining('Forbidden') as string },
  ]);
  api.before('get leases/disruption', refuse);
  await clock.advance(LOOK_MS);
  expect(keeper.locks()).toMatchObject([
    { others: [{ message: expect.stringContaining(`${TITLE} cannot be read: `) as string }] },
  ]);
  await clock.advance(LOOK_MS);
  expect(keeper.locks()).toEqual([{ tool: 'DisruptionLease', others: [], isOurs: true }]);
});

test('a plan that is deleted, or whose policy names the Lease no more, needs nothing', async () => {
  const { clock, keeper, follow, lease } = scene();
  await follow('at-work');
  await follow('at-work', 'b');
  keeper.forget('a');
  keeper.follow('b', ['Kured'], 'at-work');
  await clock.advance(LOOK_MS);
  expect(lease()?.holderIdentity).toBe('');
});

test('the name of the holder is that of the installation', () => {
  const lease = { namespace: 'kube-node-lease', name: 'k0s-autopilot-controller' };
  expect(lockHolder(['autopilot'], lease)).toBe(
    'refit/autopilot/kube-node-lease/k0s-autopilot-controller',
  );
  expect(lockHolder(['kubeadm'])).toBe('refit/kubeadm');
  expect(isHolderFor('autopilot', lockHolder(['autopilot'], lease))).toBe(true);
  expect(isHolderFor('cattle', lockHolder(['autopilot'], lease))).toBe(false);
  expect(isHolderFor('autopilot', 'patcher/autopilot')).toBe(false);
});

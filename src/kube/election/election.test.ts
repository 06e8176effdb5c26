/**
 * Tests what a candidate writes into the lease, when it may write, and how it hands the lease over.
 */
import { expect, test } from 'vitest';
import { LeaseServer, type Link, leaseClient } from '../../../test/faults/lease-server.ts';
import recorded from '../../../test/fixtures/autopilot/objects.json' with { type: 'json' };
import { cuttable, direct, PLACE, stand } from '../../../test/support/builders/elections.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { type Lease, leases } from '../resources.ts';
import { StatusError, TransportError } from '../status-error.ts';
import { createElection, timesOf } from './election.ts';
import { guardedClient } from './write-guard.ts';

const LABEL = 'autopilot.k0sproject.io/central-cordoning';

test('the first lease carries everything that others read', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock(Date.UTC(2026, 10, 20, 4, 51, 46, 657));
  const { election } = stand(server, clock, 'one', {
    labels: (identity) => ({ [LABEL]: identity }),
  });
  await clock.advance(0);
  const at = '2026-11-20T04:51:46.657000Z';
  const spec = {
    holderIdentity: 'one',
    leaseDurationSeconds: 60,
    leaseTransitions: 0,
    acquireTime: at,
    renewTime: at,
  };
  expect(server.lease).toMatchObject({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });
  expect(server.lease).toMatchObject({ metadata: { ...PLACE, labels: { [LABEL]: 'one' } }, spec });
  expect(election.term()).toEqual({ number: 0 });
  expect(election.leader()).toBe('one');
});

test('renewing moves the time alone, and keeps what others wrote', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  stand(server, clock, 'one', { labels: () => ({ mine: 'x' }) });
  await clock.advance(0);
  const theirs = server.read();
  server.replace({
    ...theirs,
    metadata: { ...theirs.metadata, labels: { mine: 'x', theirs: 'y' } },
    extra: 1,
  } as Lease);
  await clock.advance(5_000);
  const { spec, metadata } = server.read();
  expect(spec).toEqual({ ...theirs.spec, renewTime: '2026-01-01T00:00:05.000000Z' });
  expect(metadata.labels).toEqual({ mine: 'x', theirs: 'y' });
  expect(server.lease).toHaveProperty('extra', 1);
});

test('a graceful stop leaves the lease as the recorded original does, and the next candidate comes at once', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const one = stand(server, clock, 'one', { labels: (identity) => ({ [LABEL]: identity }) });
  await clock.advance(1_000);
  const two = stand(server, clock, 'two');
  await clock.advance(1_000);
  await one.stop();
  const at = '2026-01-01T00:00:02.000000Z';
  const released = server.read();
  expect(released.spec).toEqual({
    ...recorded['lease-just-after-graceful-release'].spec,
    acquireTime: at,
    renewTime: at,
  });
  expect(released.metadata.labels).toEqual({ [LABEL]: 'one' });
  await clock.advance(6_000);
  expect(server.lease?.spec).toMatchObject({
    holderIdentity: 'two',
    leaseTransitions: 1,
    leaseDurationSeconds: 60,
  });
  expect([one.heard, two.heard]).toEqual([[0, 'end'], [1]]);
});

test('a candidate takes the Lease of a silent holder only after the full duration by the local clock', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const times = {
    acquireTime: '2001-01-01T00:00:00.000000Z',
    renewTime: '2001-01-01T00:00:00.000000Z',
  };
  const spec = { holderIdentity: 'gone', leaseDurationSeconds: 60, leaseTransitions: 7, ...times };
  server.create({ metadata: { ...PLACE }, spec });
  const { heard } = stand(server, clock, 'one');
  await clock.advance(59_999);
  expect(heard).toEqual([]);
  await clock.advance(2);
  expect(heard).toEqual([8]);
});

test('a holder that gives signs of life keeps it, even with a clock far ahead of ours', async () => {
  const server = new LeaseServer();
  const here = new FakeClock();
  const there = new FakeClock(Date.UTC(1999, 0, 1));
  stand(server, there, 'other');
  const { heard } = stand(server, here, 'one');
  for (let round = 0; round < 60; round++)
    await Promise.all([there.advance(5_000), here.advance(5_000)]);
  expect(heard).toEqual([]);
});

test('a lease without duration, as some write it, counts with our own', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  server.create({ metadata: { ...PLACE }, spec: { holderIdentity: 'gone' } });
  const { heard } = stand(server, clock, 'one');
  await clock.advance(59_000);
  expect(heard).toEqual([]);
  await clock.advance(2_000);
  expect(heard).toEqual([1]);
  expect(server.lease?.spec).toMatchObject({ leaseDurationSeconds: 60, leaseTransitions: 1 });
});

test('without renewal the term ends by itself, long before another may lead', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { link, cut } = cuttable(clock);
  const one = stand(server, clock, 'one', { client: leaseClient(server, link) });
  await clock.advance(0);
  cut('request');
  await clock.advance(14_999);
  expect(one.election.term()).toEqual({ number: 0 });
  await clock.advance(1);
  expect(one.election.term()).toBeUndefined();
  expect(one.heard).toEqual([0, 'end']);
});

test('a term counts from the moment before the claim was sent, however long the answer took', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const slow: Link = async (apply, _options, mutating) => {
    const answer = await direct(apply, {}, mutating);
    if (mutating) await new Promise<void>((resolve) => void clock.schedule(4_000, resolve));
    if (clock.monotonic() > 4_500) throw new TransportError('lost');
    return answer;
  };
  const one = stand(server, clock, 'one', { client: leaseClient(server, slow) });
  await clock.advance(4_000);
  expect(one.election.term()).toEqual({ number: 0 });
  await clock.advance(10_999);
  expect(one.election.term()).toEqual({ number: 0 });
  await clock.advance(1);
  expect(one.election.term()).toBeUndefined();
});

test('a renewal whose answer is lost counts as none, until the lease is seen again', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { link, cut } = cuttable(clock);
  const one = stand(server, clock, 'one', { client: leaseClient(server, link) });
  await clock.advance(0);
  cut('answer');
  await clock.advance(6_000);
  cut(undefined);
  await clock.advance(20_000);
  expect(one.heard).toEqual([0]);
  expect(one.election.term()).toEqual({ number: 0 });
});

test('a lease that another took ends the term at the next read', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const one = stand(server, clock, 'one');
  await clock.advance(0);
  const lease = server.read();
  server.replace({
    ...lease,
    spec: { ...lease.spec, holderIdentity: 'thief', leaseTransitions: 4 },
  });
  await clock.advance(5_000);
  expect(one.heard).toEqual([0, 'end']);
  expect(one.election.leader()).toBe('thief');
});

test('a deleted lease is not taken while its holder may believe in it, and the count goes on', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  server.create({
    metadata: { ...PLACE },
    spec: { holderIdentity: 'other', leaseDurationSeconds: 60, leaseTransitions: 7 },
  });
  const { heard } = stand(server, clock, 'one');
  await clock.advance(10_000);
  server.remove();
  await clock.advance(49_000);
  expect(heard).toEqual([]);
  await clock.advance(2_000);
  expect(heard).toEqual([8]);
});

test('writes pass the guard only in a term, and end before the lease can be taken', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { link, cut } = cuttable(clock);
  const { election } = stand(server, clock, 'one', { client: leaseClient(server, link) });
  const deadlines: (number | undefined)[] = [];
  const spy: Link = async (apply, { deadlineMs }) => {
    deadlines.push(deadlineMs);
    return await direct(apply, {}, true);
  };
  const client = guardedClient(leaseClient(server, spy), election);
  const write = async (deadlineMs?: number): Promise<Lease> =>
    await client.replace(leases, server.read(), { deadlineMs });
  await expect(write().catch(() => server.read())).rejects.toThrow();
  await clock.advance(0);
  cut('request');
  await write();
  await clock.advance(14_000);
  await write();
  await write(1_000);
  expect(deadlines).toEqual([54_000, 40_000, 1_000]);
  await clock.advance(1_000);
  await expect(write()).rejects.toMatchObject({
    message: expect.stringMatching(
      /refused: this process does not hold the leader lease$/,
    ) as string,
    maybeApplied: false,
  });
  expect(await client.get(leases, 'any')).toMatchObject({ spec: { holderIdentity: 'one' } });
});

test('the lease is released only after the last write ended, and not at all where its fate is unknown', async () => {
  for (const [ending, holder] of [
    ['an answer', ''],
    ['a refusal', ''],
    ['no connection', ''],
    ['no answer', 'one'],
  ]) {
    const server = new LeaseServer();
    const clock = new FakeClock();
    const one = stand(server, clock, 'one');
    await clock.advance(0);
    const pending = Promise.withResolvers<Lease>();
    const client = guardedClient(
      leaseClient(server, async () => (await pending.promise) as never),
      one.election,
    );
    const write = client.replace(leases, server.read()).catch((thrown: unknown) => thrown);
    const stopped = one.stop();
    await clock.advance(1_000);
    expect(one.election.term()).toBeUndefined();
    expect(server.lease?.spec?.holderIdentity).toBe('one');
    if (ending === 'an answer') pending.resolve(server.read());
    else if (ending === 'a refusal')
      pending.reject(new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' }));
    else if (ending === 'no connection')
      pending.reject(new TransportError('refused', { maybeApplied: false }));
    else pending.reject(new TransportError('lost'));
    await Promise.all([write, stopped]);
    expect(server.lease?.spec?.holderIdentity).toBe(holder);
  }
});

test.each([
  ['answered in time', 2_000, ''],
  ['never answered', 10_000, 'one'],
])('a write that the stop aborts is waited for: %s', async (_what, answerMs, holder) => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const one = stand(server, clock, 'one');
  await clock.advance(0);
  const stop = new AbortController();
  const slow: Link = async (apply, { abort }) => {
    await new Promise<void>((resolve, reject) => {
      clock.schedule(answerMs, resolve);
      abort?.addEventListener('abort', () => reject(new TransportError('aborted')));
    });
    return await apply();
  };
  const client = guardedClient(leaseClient(server, slow), one.election, clock);
  const write = client
    .replace(leases, server.read(), { abort: stop.signal })
    .catch((thrown: unknown) => thrown);
  await clock.advance(100);
  stop.abort();
  const stopped = one.stop();
  await clock.advance(1_000);
  expect(server.lease?.spec?.holderIdentity).toBe('one');
  await clock.advance(9_000);
  await Promise.all([write, stopped]);
  expect(server.lease?.spec?.holderIdentity).toBe(holder);
});

test.each([
  ['is kept', 30_000, 'one'],
  ['is kept to its end', 59_999, 'one'],
  ['is released', 60_000, ''],
])(
  'a lease %s by a leader that stops %i ms after a write whose fate is unknown',
  async (_what, ms, holder) => {
    const server = new LeaseServer();
    const clock = new FakeClock();
    const one = stand(server, clock, 'one');
    await clock.advance(0);
    const lost = leaseClient(server, async () => await Promise.reject(new TransportError('lost')));
    await expect(guardedClient(lost, one.election).replace(leases, server.read())).rejects.toThrow(
      'lost',
    );
    await clock.advance(ms);
    expect(one.election.term()).toEqual({ number: 0 });
    await one.stop();
    expect(server.lease?.spec?.holderIdentity).toBe(holder);
  },
);

test('times that could overlap are refused', () => {
  const options = { client: leaseClient(new LeaseServer(), direct), ...PLACE, identity: 'one' };
  expect(() => createElection({ ...options, leaseDurationMs: 10_000 })).toThrow(RangeError);
  expect(() => createElection({ ...options, retryPeriodMs: 10_000 })).toThrow(RangeError);
  const atTheEdge = { leaseDurationMs: 10_000, renewDeadlineMs: 9_000 };
  expect(() => createElection({ ...options, ...atTheEdge })).toThrow(
    'renewDeadlineMs < 0.9 * leaseDurationMs',
  );
  expect(createElection({ ...options, ...timesOf(15_000) }).name).toBe(PLACE.name);
});

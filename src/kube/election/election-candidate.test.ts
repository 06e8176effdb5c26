/** Tests which requests a candidate sends and when, what it logs, and which listeners it calls. */

import { expect, test } from 'vitest';
import { LeaseServer, type Link, leaseClient } from '../../../test/faults/lease-server.ts';
import { cuttable, direct, PLACE, stand, TIMES } from '../../../test/support/builders/elections.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { SkewedClock } from '../../../test/support/clock/skewed-clock.ts';
import { jsonLogger, type Logger, silentLogger } from '../../util/log.ts';
import type { RequestOptions } from '../client.ts';
import { type Lease, leases } from '../resources.ts';
import { StatusError, TransportError } from '../status-error.ts';
import { NOT_RELEASED, timesOf } from './election.ts';
import { guardedClient, leadershipTerm } from './write-guard.ts';

/** Returns a logger that adds each line to `lines` as `level msg rest`. `rest` is the fields of the line. */
function logInto(lines: string[]): Logger {
  const write = (line: string): void => {
    const {
      time: _,
      level,
      msg,
      lease,
      identity,
      ...rest
    } = JSON.parse(line) as Record<string, unknown>;
    lines.push(
      `${lease as string}/${identity as string} ${level as string} ${msg as string} ${JSON.stringify(rest)}`,
    );
  };
  return jsonLogger(write, () => 0, 'debug');
}

/** Counts requests, and records their times and options. */
function counting(clock: FakeClock, next: Link = direct) {
  const asked: { at: number; mutating: boolean; options: RequestOptions }[] = [];
  const link: Link = async (apply, options, mutating) => {
    asked.push({ at: clock.monotonic(), mutating, options });
    return await next(apply, options, mutating);
  };
  return { asked, link };
}

const held = (more: Partial<NonNullable<Lease['spec']>> = {}): Lease => ({
  metadata: { ...PLACE },
  spec: { holderIdentity: 'other', leaseDurationSeconds: 60, leaseTransitions: 7, ...more },
});

test('renewal has two thirds of the duration, and five tries in that', () => {
  expect(timesOf(15_000)).toEqual({
    leaseDurationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2_000,
  });
});

test('a lease counts for as long as its holder wrote, not for as long as ours would', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  server.create(held({ leaseDurationSeconds: 100 }));
  const { heard } = stand(server, clock, 'one');
  await clock.advance(99_999);
  expect(heard).toEqual([]);
  await clock.advance(2);
  expect(heard).toEqual([8]);
});

test.each<[string, Lease['spec'], number]>([
  ['that was released', { holderIdentity: '', leaseDurationSeconds: 60, leaseTransitions: 7 }, 8],
  ['without a holder', { leaseDurationSeconds: 60 }, 1],
  ['without anything', undefined, 1],
])('a lease %s is taken at once', async (_what, spec, term) => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  server.create({ metadata: { ...PLACE }, ...(spec && { spec }) });
  const { heard } = stand(server, clock, 'one');
  await clock.advance(0);
  expect(heard).toEqual([term]);
});

test('a first claim that arrived, but whose answer was lost, is not claimed a second time', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { link, cut } = cuttable(clock);
  cut('answer');
  const client = leaseClient(server, async (apply, options, mutating) =>
    mutating ? await link(apply, options, mutating) : await direct(apply, options, mutating),
  );
  const { heard } = stand(server, clock, 'one', { client });
  await clock.advance(5_000);
  cut(undefined);
  await clock.advance(20_000);
  expect(heard).toEqual([0]);
  expect(server.written.map(({ spec }) => spec?.leaseTransitions)).toEqual(
    server.written.map(() => 0),
  );
});

test('a leader whose lease was deleted ends its term, and makes a new lease with nothing of the old one', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { heard, election } = stand(server, clock, 'one');
  await clock.advance(0);
  server.remove();
  await clock.advance(5_000);
  expect(heard).toEqual([0, 'end']);
  await clock.advance(6_000);
  expect(heard).toEqual([0, 'end', 0]);
  expect(election.leader()).toBe('one');
});

test('the lease of another that was deleted is made anew, without what others had written to it', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  server.create({ ...held(), metadata: { ...PLACE, labels: { theirs: 'x' } } });
  stand(server, clock, 'one');
  await clock.advance(1_000);
  server.remove();
  await clock.advance(60_000);
  expect(server.read().metadata).not.toHaveProperty('labels');
  expect(server.read().spec).toMatchObject({ holderIdentity: 'one', leaseTransitions: 8 });
});

test('a candidate whose work goes on renews nothing and gives nothing back: the next one leads when the lease expires', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const one = stand(server, clock, 'one');
  await clock.advance(0);
  const two = stand(server, clock, 'two');
  await one.stop(NOT_RELEASED);
  expect(one.heard).toEqual([0, 'end']);
  await clock.advance(TIMES.leaseDurationMs - 2_000);
  expect(server.read().spec).toMatchObject({ holderIdentity: 'one' });
  await clock.advance(6_000);
  expect(two.heard).toEqual([1]);
});

test('a claim that the server refuses, such as without its namespace, is told until it succeeds', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  let refusal: StatusError | undefined = new StatusError({
    kind: 'Status',
    code: 404,
    reason: 'NotFound',
    message: 'no namespace',
  });
  const client = leaseClient(server, async (apply, options, mutating) => {
    if (mutating && refusal) throw refusal;
    return await direct(apply, options, mutating);
  });
  const lines: string[] = [];
  const { election, heard } = stand(server, clock, 'one', { client, log: logInto(lines) });
  await clock.advance(0);
  expect(election.refusal()?.code).toBe(404);
  expect(lines.filter((line) => line.includes('warn'))).toEqual([
    `${PLACE.name}/one warn the server refuses the lease {"problem":"no namespace"}`,
  ]);
  refusal = undefined;
  await clock.advance(6_000);
  expect(heard).toEqual([0]);
  expect(election.refusal()).toBeUndefined();
});

test('a renewal is one request, within a third of the renewal time', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { asked, link } = counting(clock);
  stand(server, clock, 'one', { client: leaseClient(server, link) });
  await clock.advance(10_000);
  const { namespace } = PLACE;
  expect(asked.map(({ at, mutating }) => [at, mutating])).toEqual([
    [0, false],
    [0, true],
    [5_000, true],
    [10_000, true],
  ]);
  for (const { options } of asked) expect(options).toMatchObject({ namespace, deadlineMs: 5_000 });
});

test('a candidate asks at its own pace, a tenth of the chance later, also while the server fails', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { link, cut } = cuttable(clock);
  const { asked, link: counted } = counting(clock, link);
  server.create(held());
  stand(server, clock, 'one', { client: leaseClient(server, counted) });
  await clock.advance(12_000);
  expect(asked.map(({ at }) => at)).toEqual([0, 5_500, 11_000]);
  cut('request');
  await clock.advance(28_000);
  // Each failing request takes its whole 5 s.
  expect(asked.map(({ at }) => at)).toEqual([0, 5_500, 11_000, 16_500, 27_000, 37_500]);
});

test('a leader tries again sooner the less time is left, but at most ten times a period', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  let isBroken = false;
  const { asked, link } = counting(clock, async (apply, options, mutating) => {
    if (isBroken) throw new TransportError('refused', { maybeApplied: false });
    return await direct(apply, options, mutating);
  });
  stand(server, clock, 'one', { client: leaseClient(server, link) });
  await clock.advance(0);
  isBroken = true;
  await clock.advance(15_000);
  const times = asked.slice(2).map(({ at }) => Math.round(at));
  expect(times).toEqual([
    5_000, 7_500, 9_375, 10_781, 11_836, 12_627, 13_220, 13_720, 14_220, 14_720,
  ]);
});

test('a conflict is answered by one read and one more claim; other failures by none', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { asked, link } = counting(clock);
  const { heard } = stand(server, clock, 'one', { client: leaseClient(server, link) });
  await clock.advance(0);
  const lease = server.read();
  server.replace({ ...lease, metadata: { ...lease.metadata, labels: { theirs: 'y' } } });
  await clock.advance(5_000);
  expect(asked.slice(2).map(({ mutating }) => mutating)).toEqual([true, false, true]);
  expect(heard).toEqual([0]);
});

test('a candidate that stops sends nothing, and a leader whose lease another took leaves it alone', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { asked, link } = counting(clock);
  const leader = stand(server, clock, 'one');
  await clock.advance(0);
  const candidate = stand(server, clock, 'two', { client: leaseClient(server, link) });
  await clock.advance(0);
  const before = asked.length;
  await candidate.stop();
  expect(asked.length).toBe(before);
  expect(candidate.heard).toEqual([]);
  const lease = server.read();
  server.replace({ ...lease, spec: { ...lease.spec, holderIdentity: 'thief' } });
  await leader.stop();
  expect(server.read().spec?.holderIdentity).toBe('thief');
  expect(leader.heard).toEqual([0, 'end']);
  expect(clock.pending).toBe(0);
});

test('releasing the lease is limited in time like any other request', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { asked, link } = counting(clock);
  const one = stand(server, clock, 'one', { client: leaseClient(server, link) });
  await clock.advance(0);
  await one.stop();
  expect(server.read().spec?.holderIdentity).toBe('');
  expect(asked.at(-1)).toMatchObject({
    mutating: true,
    options: { namespace: PLACE.namespace, deadlineMs: 5_000 },
  });
});

test('the log says when it leads, and why it no longer does', async () => {
  const lines: string[] = [];
  const server = new LeaseServer();
  const clock = new FakeClock();
  const { link, cut } = cuttable(clock);
  const one = stand(server, clock, 'one', {
    client: leaseClient(server, link),
    log: logInto(lines),
  });
  await clock.advance(0);
  cut('request');
  await clock.advance(15_000);
  cut(undefined);
  await clock.advance(10_000);
  const lease = server.read();
  server.replace({
    ...lease,
    spec: { ...lease.spec, holderIdentity: 'thief', leaseDurationSeconds: 1 },
  });
  await clock.advance(20_000);
  server.remove();
  await clock.advance(20_000);
  await one.stop();
  const at = `${PLACE.name}/one`;
  expect(lines.filter((line) => !line.includes(' warn '))).toEqual([
    `${at} info leading {"term":0}`,
    `${at} info no longer leading {"why":"the lease was not renewed"}`,
    `${at} info leading {"term":0}`,
    `${at} info no longer leading {"why":"another process took the lease"}`,
    `${at} info leading {"term":1}`,
    `${at} info no longer leading {"why":"the lease was deleted"}`,
    `${at} info leading {"term":1}`,
    `${at} info no longer leading {"why":"stopping"}`,
  ]);
  expect(new Set(lines.filter((line) => line.includes(' warn ')))).toEqual(
    new Set([`${at} warn cannot reach the lease {"problem":"lost"}`]),
  );
});

test('the log says nothing of a candidate that came too late, and says why a lease is left to expire', async () => {
  const lines: string[] = [];
  const server = new LeaseServer();
  const clock = new FakeClock();
  const one = stand(server, clock, 'one', { log: logInto(lines) });
  const two = stand(server, clock, 'two', { log: logInto(lines) });
  await clock.advance(0);
  await two.stop();
  expect(lines).toEqual([`${PLACE.name}/one info leading {"term":0}`]);
  one.election.beginWrite()?.end(false);
  await one.stop();
  expect(lines.at(-1)).toBe(
    `${PLACE.name}/one warn the lease expires instead of being released, because a write of this process may still reach the server {}`,
  );
});

test('one who listens no more hears nothing, and one who fails keeps nothing from the others', async () => {
  const lines: string[] = [];
  const server = new LeaseServer();
  const clock = new FakeClock();
  const client = leaseClient(server, async (apply, options, mutating) => {
    await new Promise<void>((resolve) => void clock.schedule(10, resolve));
    return await direct(apply, options, mutating);
  });
  const { election } = stand(server, clock, 'one', { client, log: logInto(lines) });
  expect(election.leader()).toBe('');
  const heard: string[] = [];
  const stopListening = election.onChange(() => heard.push('first'));
  election.onChange(() => {
    throw new Error('broken');
  });
  election.onChange(() => heard.push('last'));
  stopListening();
  await clock.advance(100);
  expect(heard).toEqual(['last']);
  expect(lines).toContain(
    `${PLACE.name}/one error a listener of the election failed {"problem":"broken"}`,
  );
});

test('a term ends by the clock alone, also where no timer ran, as on a machine that was halted', async () => {
  const machine = new FakeClock();
  const clock = new SkewedClock(machine);
  clock.halt();
  const term = leadershipTerm(clock, TIMES, silentLogger);
  term.won(3, 0);
  await machine.advance(14_999);
  expect(term.term()).toEqual({ number: 3 });
  await machine.advance(1);
  expect([term.term(), term.beginWrite()]).toEqual([undefined, undefined]);
});

test('writes are over once the last of them is', async () => {
  const term = leadershipTerm(new FakeClock(), TIMES, silentLogger);
  term.won(0, 0);
  const first = term.beginWrite();
  const second = term.beginWrite();
  let isOver = false;
  const settled = term.settled().then(() => {
    isOver = true;
  });
  first?.end(true);
  await new Promise((resolve) => setImmediate(resolve));
  expect(isOver).toBe(false);
  second?.end(true);
  await settled;
});

test('a write that is over waits for nothing, whenever its caller stops', async () => {
  const server = new LeaseServer();
  const clock = new FakeClock();
  const one = stand(server, clock, 'one');
  await clock.advance(0);
  const client = guardedClient(leaseClient(server, direct), one.election, clock);
  const before = clock.pending;
  const early = new AbortController();
  const late = new AbortController();
  const write = client.replace(leases, server.read(), { abort: early.signal });
  early.abort();
  await write;
  expect(clock.pending).toBe(before);
  await client.replace(leases, server.read(), { abort: late.signal });
  late.abort();
  expect(clock.pending).toBe(before);
});

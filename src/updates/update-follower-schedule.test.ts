/** Proves when a leader starts an update: a year of windows in two time zones, ticks, and who asks for a check. */
import { beforeEach, expect, test } from 'vitest';
import type { Script } from '../../test/faults/stub-server.ts';
import {
  ask,
  beginAnew,
  DAY,
  follow,
  HOUR,
  indexOf,
  lead,
  MINUTE,
  offering,
  planned,
  reported,
  runs,
  START,
  serve,
  world,
} from '../../test/support/builders/update-leaders.ts';
import { WHOLE } from '../../test/support/whole.ts';
import { PLAN_NAME, plans } from '../api/autopilot/plan.ts';
import type { UpdateConfig } from '../api/autopilot/update-config.ts';

beforeEach(beginAnew);

type Strategy = NonNullable<UpdateConfig['spec']['upgradeStrategy']>;

/**
 * Returns the local times at which Plans are created in one year. A new release appears each midnight. Each Plan is
 * completed at once.
 */
async function aYear(timeZone: string, strategy: Strategy): Promise<Temporal.ZonedDateTime[]> {
  const local = (): Temporal.ZonedDateTime =>
    Temporal.Instant.fromEpochMilliseconds(world.clock.now()).toZonedDateTimeISO(timeZone);
  const first = local().toPlainDate();
  const offered = (): string =>
    `v1.36.${first.until(local().toPlainDate()).total('days') + 1}+k0s.0`;
  const server = await offering(() => indexOf(offered()));
  follow(server, { upgradeStrategy: strategy }, { 'upgrade.refit.dev/time-zone': timeZone });
  const leader = lead({ periodMs: 4 * HOUR });
  const starts: Temporal.ZonedDateTime[] = [];
  while (world.clock.now() < START + 365 * DAY) {
    // Keeps only the calls of this iteration, because a year has very many.
    world.api.calls.length = 0;
    const waitMs = await leader.follow();
    if (planned() === undefined) await world.clock.advance(Math.min(Math.max(waitMs, 1), DAY));
    else {
      starts.push(local());
      world.api.change(plans, PLAN_NAME, (plan) => ({
        ...plan,
        status: { state: 'Completed', commands: [] },
      }));
      runs(planned() ?? '');
    }
  }
  return starts;
}

test('with a period of some seconds the next check that is told is never a past one', async () => {
  const server = await offering(() => indexOf('v1.36.0+k0s.0'));
  follow(server);
  const leader = lead({ periodMs: 20_000 });
  for (let round = 0; round < 5; round++) {
    const waitMs = await leader.follow();
    expect(Date.parse(reported()?.nextCheck ?? '')).toBeGreaterThan(world.clock.now());
    await world.clock.advance(waitMs);
  }
});

const CLOCK_CHANGES: Readonly<Record<string, readonly [skipped: string, doubled: string]>> = {
  'Europe/Berlin': ['2027-03-28', '2027-10-31'],
  'America/New_York': ['2027-03-14', '2027-11-07'],
};

const PERIODIC = {
  type: 'periodic' as const,
  periodic: { days: [], startTime: '02:30', length: '1h' },
};
const CRON = { type: 'cron' as const, cron: '0 30 2 * * *' };
const YEARS: readonly (readonly [zone: string, type: string, strategy: Strategy])[] = [
  ['Europe/Berlin', 'periodic', PERIODIC],
  ['America/New_York', 'cron', CRON],
  ...(WHOLE
    ? ([
        ['Europe/Berlin', 'cron', CRON],
        ['America/New_York', 'periodic', PERIODIC],
      ] as const)
    : []),
];

test.each(YEARS)(
  'a year in %s, %s: one Plan starts each day, also on days when the clock changes',
  async (zone, _type, strategy) => {
    const starts = await aYear(zone, strategy);
    const days = starts.map((start) => start.toPlainDate().toString());
    expect(new Set(days).size).toBe(days.length);
    // The first or the last day may lie outside of the year in UTC.
    expect(days.length).toBeGreaterThanOrEqual(364);
    const [skipped = ''] = CLOCK_CHANGES[zone] ?? [];
    const times = Object.fromEntries(
      starts.map((start) => [
        start.toPlainDate().toString(),
        start.toPlainTime().toString().slice(0, 5),
      ]),
    );
    expect(times[skipped]).toBe('03:00');
    expect(new Set(Object.values({ ...times, [skipped]: '02:30' }))).toEqual(new Set(['02:30']));
  },
);

test('a tick that no leader heard is made up for within ten minutes, and not later', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')), {
    upgradeStrategy: { type: 'cron', cron: '0 0 3 * * *' },
  });
  await world.clock.advance(3 * HOUR + 30 * MINUTE);
  expect(Math.round((await lead().follow()) / MINUTE)).toBe(23.5 * 60);
  expect(planned()).toBeUndefined();
  await world.clock.advance(23.5 * HOUR + 5 * MINUTE);
  await lead().follow();
  expect(planned()).toBe('v1.36.1+k0s.0');
});

test('a Plan that changes while its successor is created costs no tick: the next read creates it', async () => {
  let isTouched = false;
  const script: Script = (_, response) => {
    // Updates the previous Plan after the leader has read it and before the leader replaces it.
    if (isTouched) world.api.change(plans, PLAN_NAME, (plan) => plan);
    isTouched = false;
    response.end(indexOf(world.clock.now() > START + DAY ? 'v1.36.2+k0s.0' : 'v1.36.1+k0s.0'));
  };
  follow(await serve(script), { upgradeStrategy: { type: 'cron', cron: '0 0 3 * * *' } });
  const leader = lead();
  await leader.follow();
  await world.clock.advance(3 * HOUR);
  await leader.follow();
  runs('v1.36.1+k0s.0');
  world.api.change(plans, PLAN_NAME, (plan) => ({
    ...plan,
    status: { state: 'Completed', commands: [] },
  }));
  isTouched = true;
  await world.clock.advance(DAY);
  await expect(leader.follow()).rejects.toThrow('Conflict');
  expect(planned()).toBe('v1.36.1+k0s.0');
  await world.clock.advance(1_000);
  await leader.follow();
  expect([planned(), reported()?.reason]).toEqual(['v1.36.2+k0s.0', 'UpdateStarted']);
});

test('the next leader asks the channel of a schedule at once, so it knows what the last one knew, and starts nothing', async () => {
  let isUp = true;
  const script: Script = (_, response) =>
    isUp ? response.end(indexOf('v1.36.0+k0s.0')) : response.writeHead(503).end();
  follow(await serve(script), { upgradeStrategy: { type: 'cron', cron: '0 0 3 * * *' } });
  await lead().follow();
  await lead().follow();
  expect(reported()).toMatchObject({ reason: 'UpToDate', available: 'v1.36.0+k0s.0' });
  isUp = false;
  const leader = lead();
  expect([await leader.follow(), await leader.follow(), reported()?.reason]).toEqual([
    3 * HOUR,
    3 * HOUR,
    'CheckFailed',
  ]);
});

test('between two ticks a schedule starts nothing, and says so: neither when a person asks nor when a Plan ends', async () => {
  let offered = 'v1.36.1+k0s.0';
  follow(await offering(() => indexOf(offered)), {
    upgradeStrategy: { type: 'cron', cron: '0 0 3 * * *' },
  });
  const leader = lead();
  await leader.follow();
  ask();
  await leader.follow();
  const waiting = {
    reason: 'WindowClosed',
    message: 'v1.36.1+k0s.0 waits for the next tick of the schedule',
  };
  expect([planned(), reported()]).toEqual([
    undefined,
    expect.objectContaining({ ...waiting, obeyed: 'now' }),
  ]);
  await world.clock.advance(3 * HOUR);
  await leader.follow();
  expect(planned()).toBe(offered);
  offered = 'v1.36.2+k0s.0';
  await world.clock.advance(DAY);
  await leader.follow();
  runs('v1.36.1+k0s.0');
  world.api.change(plans, PLAN_NAME, (plan) => ({
    ...plan,
    status: { state: 'Completed', commands: [] },
  }));
  await leader.follow();
  expect([planned(), reported()?.reason]).toEqual(['v1.36.1+k0s.0', 'WindowClosed']);
  expect(leader.events.filter(({ reason }) => reason === 'UpdateStarted')).toHaveLength(1);
});

/**
 * Tests that mistakes in an UpdateConfig are refused with an error that says what would be correct, and that the
 * documented examples are accepted.
 */
import { expect, test } from 'vitest';
import type { UpdateConfig } from '../../api/autopilot/update-config.ts';
import { targetProblems } from '../../dialects/autopilot/plan/problems.ts';
import { readUpdateConfig } from './read-config.ts';

type Spec = UpdateConfig['spec'];
const PERIODIC: Spec = {
  updateServer: 'https://example.com/base/',
  upgradeStrategy: {
    type: 'periodic',
    periodic: { days: ['Monday', 'Sunday'], startTime: '9:30', length: '1.5h' },
  },
};

const read = (spec: Spec, annotations: Record<string, string> = {}, allowInsecure = false) =>
  readUpdateConfig(
    { metadata: { name: 'u', annotations }, spec },
    { targetProblems, allowInsecure },
  );
const periodic = (fields: Record<string, unknown>): Spec => ({
  upgradeStrategy: { type: 'periodic', periodic: { startTime: '22:00', length: '2h', ...fields } },
});
const cron = (text: string): Spec => ({ upgradeStrategy: { type: 'cron', cron: text } });

test('the window of an UpdateConfig uses the time zone of the annotation', () => {
  const { settings, problems } = read(PERIODIC, { 'upgrade.refit.dev/time-zone': 'Europe/Berlin' });
  expect(problems).toEqual([]);
  expect(settings).toMatchObject({
    channel: 'stable',
    server: 'https://example.com/base',
    afterFailure: 'Wait',
    schedule: {
      window: { days: [1, 7], startMinute: 570, lengthMs: 5_400_000, timeZone: 'Europe/Berlin' },
      written: {
        days: ['Monday', 'Sunday'],
        start: '09:30',
        length: '5400000ms',
        timeZone: 'Europe/Berlin',
      },
    },
  });
});

test('a misspelt annotation is a problem, and those of Refit itself are none', () => {
  const { problems } = read(PERIODIC, {
    'upgrade.refit.dev/timezone': 'Europe/Berlin',
    'example.com/timezone': 'x',
  });
  expect(problems).toEqual([
    'metadata.annotations[upgrade.refit.dev/timezone]: is unknown; use upgrade.refit.dev/time-zone, upgrade.refit.dev/after-failure, upgrade.refit.dev/lead-time, upgrade.refit.dev/minimum-release-age',
  ]);
  const own = { 'upgrade.refit.dev/check': 'now', 'upgrade.refit.dev/update-status': '{}' };
  expect(read(PERIODIC, own).problems).toEqual([]);
});

test('a server without a scheme is asked over https, and windows are in UTC', () => {
  const { settings } = read({ ...periodic({}), updateServer: 'example.com' });
  expect(settings).toMatchObject({
    server: 'https://example.com',
    schedule: { window: { days: [], timeZone: 'UTC' } },
  });
});

test.each<readonly [string, Spec, string]>([
  [
    'Refit refuses Tuesdsay, a wrong weekday in the documentation of k0s, and suggests Tuesday',
    periodic({ days: ['Tuesdsay'] }),
    'days[0]: "Tuesdsay" is not a weekday; use Tuesday',
  ],
  [
    'the plural of a weekday',
    periodic({ days: ['Monday', 'Tuesdays'] }),
    'days[1]: "Tuesdays" is not a weekday; use Tuesday',
  ],
  [
    'a word that is no weekday',
    periodic({ days: ['Caturday'] }),
    'is not a weekday; use Monday, Tuesday,',
  ],
  [
    'a window without a start',
    periodic({ startTime: undefined }),
    'spec.upgradeStrategy.periodic.startTime: is missing; use for example 22:00',
  ],
  [
    'a window that starts at 25:00',
    periodic({ startTime: '25:00' }),
    'startTime: "25:00" is not a time of day',
  ],
  [
    'a window without a length',
    periodic({ length: undefined }),
    'spec.upgradeStrategy.periodic.length: is missing; use for example 2h30m',
  ],
  [
    'a window whose length is a month',
    periodic({ length: '720h' }),
    'length: "720h" is not a duration up to 168h',
  ],
  ['no update strategy', {}, 'spec.upgradeStrategy.type: is missing; use periodic or cron'],
  [
    'a window without a type',
    { upgradeStrategy: { periodic: { startTime: '22:00', length: '2h' } } },
    'spec.upgradeStrategy.type: is missing; use periodic',
  ],
  [
    'a schedule without a type',
    { upgradeStrategy: { cron: '0 0 22 * * *' } },
    'spec.upgradeStrategy.type: is missing; use cron',
  ],
  [
    'a schedule of cron with the type periodic',
    { upgradeStrategy: { type: 'periodic', cron: '0 0 22 * * *' } },
    'spec.upgradeStrategy.cron: "0 0 22 * * *" belongs to the type cron, but the type is periodic; use type: cron, or write spec.upgradeStrategy.periodic with startTime and length',
  ],
  [
    'a window with the type cron, which k0s would ignore',
    { upgradeStrategy: { type: 'cron', periodic: { startTime: '22:00', length: '2h' } } },
    'spec.upgradeStrategy.cron: is missing, although the type is cron and periodic has a window; use type: periodic, or write a schedule',
  ],
  [
    'Refit refuses a cron schedule of five fields that k0s and crontab read differently',
    cron('0 3 * * *'),
    '"0 3 * * *" has two meanings: k0s takes the first field as seconds (2026-01-01T00:03',
  ],
  [
    'no day of any month',
    cron('0 0 0 31 2 *'),
    'is never due, because no month has such a day; use six fields',
  ],
  [
    'an interval that is too long',
    cron('@every 99999999h'),
    'is longer than 2562047h, the longest duration; use an interval',
  ],
  ['an interval that is no duration', cron('@every day'), 'day is not a duration; use an interval'],
  [
    'an interval below a second',
    cron('@every 10ms'),
    'is too often; use an interval of at least one second',
  ],
  [
    'plain http',
    { ...PERIODIC, updateServer: 'http://example.com' },
    'is plain http, so anybody on the network path can decide',
  ],
  [
    'an update server with another scheme than http and https',
    { ...PERIODIC, updateServer: 'ftp://me:secret@example.com' },
    '"ftp://***@example.com" is not a server',
  ],
  [
    'a blank before the server',
    { ...PERIODIC, updateServer: ' https://example.com' },
    'spec.updateServer: " https://example.com" is not a server',
  ],
  [
    'a blank after the server',
    { ...PERIODIC, updateServer: 'https://example.com ' },
    'spec.updateServer: "https://example.com " is not a server',
  ],
  [
    'a channel elsewhere',
    { ...PERIODIC, channel: '../../admin' },
    'spec.channel: "../../admin" is not a channel',
  ],
  [
    'an empty command',
    { ...PERIODIC, planSpec: { commands: [{}] } },
    'spec.planSpec.commands[0]: {} has no update',
  ],
  [
    'no node at a time',
    {
      ...PERIODIC,
      planSpec: {
        commands: [{ airgapupdate: { workers: { discovery: {}, limits: { concurrent: 0 } } } }],
      },
    },
    'spec.planSpec.commands[0].airgapupdate.workers.limits.concurrent: 0 is less than 1; use 1 or more',
  ],
])('an UpdateConfig is refused for its spec: %s', (_name, spec, problem) => {
  const { settings, problems } = read(spec);
  expect([settings, problems.length]).toEqual([undefined, 1]);
  expect(problems[0]).toContain(problem);
});

test('annotations of Refit that are unknown or have a wrong value are refused', () => {
  const annotations = {
    'upgrade.refit.dev/time-zone': 'Mars/Base',
    'upgrade.refit.dev/after-failure': 'newer',
  };
  expect(read(PERIODIC, annotations).problems).toEqual([
    'metadata.annotations[upgrade.refit.dev/time-zone]: "Mars/Base" is not a time zone; use for example Europe/Berlin',
    'metadata.annotations[upgrade.refit.dev/after-failure]: "newer" is unknown; use Wait or Newer',
  ]);
});

test('an update server over plain http is accepted where plain http is allowed', () => {
  expect(read({ ...PERIODIC, updateServer: 'http://10.0.0.1:8080' }, {}, true).problems).toEqual(
    [],
  );
});

const AFTER = Date.UTC(2026, 2, 28, 12);
test.each([
  ['* * * * * *', '2026-03-28T12:00:01.000Z'],
  ['0 30 22 * * ?', '2026-03-28T22:30:00.000Z'],
  ['0 10/25 * * * *', '2026-03-28T12:10:00.000Z'],
  ['0 0 5/6 * * *', '2026-03-28T17:00:00.000Z'],
  ['0 0 3 */2 * MON', '2026-04-13T03:00:00.000Z'],
  ['0 0 3 5 * */2', '2026-04-05T03:00:00.000Z'],
  ['0 0 3 5,*/2 * MON', '2026-04-13T03:00:00.000Z'],
  ['0 0 3 5 * MON', '2026-03-30T03:00:00.000Z'],
  ['30 22 * * SUN', '2026-03-29T22:30:00.000Z'],
  ['0 22 * * 0', '2026-03-29T22:00:00.000Z'],
  ['@hourly', '2026-03-28T13:00:00.000Z'],
  ['@daily', '2026-03-29T00:00:00.000Z'],
  ['@midnight', '2026-03-29T00:00:00.000Z'],
  ['@weekly', '2026-03-29T00:00:00.000Z'],
  ['@monthly', '2026-04-01T00:00:00.000Z'],
  ['@Yearly', '2027-01-01T00:00:00.000Z'],
  ['@annually', '2027-01-01T00:00:00.000Z'],
  ['@every 5h', '2026-03-28T15:00:00.000Z'],
  ['', '2026-03-28T13:00:00.000Z'],
])('cron "%s" comes next at %s', (text, next) => {
  const { schedule } = read(cron(text)).settings ?? {};
  const time = schedule?.kind === 'cron' ? schedule.cron.next(AFTER) : undefined;
  expect(new Date(time ?? 0).toISOString()).toBe(next);
});

/** Proves what a leader makes of its channel: a year of windows, hostile servers, skewed clocks, and two leaders at once. */
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { type Script, startStubServer } from '../../test/faults/stub-server.ts';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { WHOLE } from '../../test/support/whole.ts';
import { PLAN_NAME, plans } from '../api/autopilot/plan.ts';
import { type UpdateConfig, updateConfigs } from '../api/autopilot/update-config.ts';
import { phaseOfPlan } from '../dialects/autopilot/plan/states.ts';
import { ABORT_ANNOTATION } from '../engine/model/controls.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventNote } from '../kube/event-series.ts';
import { namespaces, nodes, secrets } from '../kube/resources.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { controlNodes } from '../signal/names.ts';
import { rfc3339 } from '../util/clock.ts';
import { silentLogger } from '../util/log.ts';
import { CHECK_ANNOTATION, statusOf } from './status.ts';
import { UpdateFollower, type UpdateParts } from './update-follower.ts';

const NEVER = new AbortController().signal;
const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;
const SHA = 'ab'.repeat(32);
const START = Date.UTC(2027, 0, 1);
const ALWAYS = {
  type: 'periodic' as const,
  periodic: { days: [], startTime: '00:00', length: '24h' },
};

let api = new MemoryApi();
let clock = new FakeClock(START);
beforeEach(() => {
  api = new MemoryApi();
  clock = new FakeClock(START);
  runs('v1.36.0+k0s.0');
  api.put(namespaces, { metadata: { name: 'kube-system', uid: 'cluster' } });
});

function runs(k0sVersion: string): void {
  api.put(controlNodes, { metadata: { name: 'c1' }, status: { addresses: [], k0sVersion } });
}

const indexOf = (version: string, more: Record<string, unknown> = {}): string => {
  const file = { os: 'linux', arch: 'amd64', k0s: `http://example.com/${version}`, k0sSha256: SHA };
  return JSON.stringify({ version, downloadURLs: [file], ...more });
};

type Strategy = NonNullable<UpdateConfig['spec']['upgradeStrategy']>;

interface Leader {
  readonly events: readonly EventNote[];
  /** Resolves with the milliseconds until it wants to check again. */
  follow(stop?: AbortSignal): Promise<number>;
}

function lead(more: Partial<UpdateParts> = {}): Leader {
  const events: EventNote[] = [];
  const follower = new UpdateFollower({
    client: api.client,
    writer: api.client,
    clock,
    random: () => 0.5,
    log: silentLogger,
    events: { record: (_object, note) => void events.push(note) },
    metrics: createMetrics(),
    phaseOf: phaseOfPlan,
    targetProblems: () => [],
    allowInsecure: true,
    environment: {},
    userAgent: 'refit-test',
    clusterInfo: undefined,
    periodMs: 10 * MINUTE,
    probe: undefined,
    ...more,
  });
  const follow = async (stop = NEVER): Promise<number> => {
    const { items } = await api.client.listAll(updateConfigs);
    return (await follower.followAll(items, { abort: NEVER, stop })).requeueAfterMs ?? DAY;
  };
  return { events, follow };
}

async function serve(script: Script): Promise<string> {
  const server = await startStubServer(script);
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  return server.config.server;
}

const offering = async (text: () => string): Promise<string> =>
  await serve((_, response) => response.end(text()));

function follow(
  updateServer: string,
  more: Partial<UpdateConfig['spec']> = {},
  annotations = {},
): void {
  const metadata = {
    name: 'u',
    uid: 'uid-u',
    generation: 1,
    creationTimestamp: rfc3339(START),
    annotations,
  };
  api.put(updateConfigs, { metadata, spec: { updateServer, upgradeStrategy: ALWAYS, ...more } });
}

/** Of a leader that does not live to report what it was answered. */
function dyingAfterOneWrite(): KubeClient {
  let writes = 0;
  const patch: KubeClient['patch'] = async (...given) => {
    if (writes++ > 0) throw new Error('the process ended');
    return await api.client.patch(...given);
  };
  return { ...api.client, patch };
}

const reported = (): ReturnType<typeof statusOf> => statusOf(api.read(updateConfigs, 'u'));
const planned = (): string | undefined => {
  const found = api.calls.includes(`create plans/${PLAN_NAME}`)
    ? api.read(plans, PLAN_NAME)
    : undefined;
  return found?.spec.commands[0]?.k0supdate?.version;
};

/** The local dates on which Plans were created. A new release comes each midnight; each Plan is done at once. */
async function aYear(timeZone: string, strategy: Strategy): Promise<Temporal.ZonedDateTime[]> {
  const local = (): Temporal.ZonedDateTime =>
    Temporal.Instant.fromEpochMilliseconds(clock.now()).toZonedDateTimeISO(timeZone);
  const first = local().toPlainDate();
  const offered = (): string =>
    `v1.36.${first.until(local().toPlainDate()).total('days') + 1}+k0s.0`;
  const server = await offering(() => indexOf(offered()));
  follow(server, { upgradeStrategy: strategy }, { 'upgrade.refit.dev/time-zone': timeZone });
  const leader = lead({ periodMs: 4 * HOUR });
  const starts: Temporal.ZonedDateTime[] = [];
  const created = (): number => api.calls.filter((call) => call.startsWith('create plans')).length;
  while (clock.now() < START + 365 * DAY) {
    const waitMs = await leader.follow();
    if (created() === starts.length) await clock.advance(Math.min(Math.max(waitMs, 1), DAY));
    else {
      starts.push(local());
      api.change(plans, PLAN_NAME, (plan) => ({
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
    expect(Date.parse(reported()?.nextCheck ?? '')).toBeGreaterThan(clock.now());
    await clock.advance(waitMs);
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
  ['Europe/Berlin', 'cron', CRON],
  ['America/New_York', 'cron', CRON],
  ...(WHOLE ? [['America/New_York', 'periodic', PERIODIC] as const] : []),
];

test.each(YEARS)(
  'a year in %s, %s: no window is missed, none counts twice, in both nights of the clock change',
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

test.each<readonly [string, Script, string, RegExp]>([
  [
    'HTML with 200',
    (_, response) => response.end('<html>login</html>'),
    'CheckFailed',
    /sent HTML instead of an index/,
  ],
  [
    'a lying length',
    (_, response) => response.writeHead(200, { 'content-length': 999 }).end('x'),
    'CheckFailed',
    /broke off/,
  ],
  ['an error', (_, response) => response.writeHead(503).end(), 'CheckFailed', /answered 503/],
  [
    'an older release',
    (_, response) => response.end(indexOf('v1.35.9+k0s.0')),
    'Downgrade',
    /never goes back by itself/,
  ],
  [
    'a withdrawn release',
    (_, response) => response.end(indexOf('v1.36.1', { withdrawn: { 'v1.36.1': 'bad' } })),
    'Withdrawn',
    /was withdrawn: bad/,
  ],
  [
    'a minor version skipped, and none between',
    ({ url }, response) =>
      url.includes('/v1.37/') ? response.writeHead(404).end() : response.end(indexOf('v1.38.0')),
    'SkippedMinor',
    /offer a release of v1.37 first \(.*answered 404/,
  ],
  [
    'no files',
    (_, response) => response.end(JSON.stringify({ version: 'v1.36.1', downloadURLs: [] })),
    'NoDownload',
    /has no k0s binary of v1.36.1/,
  ],
])('a server with %s: a Warning, and no Plan', async (_name, script, reason, message) => {
  follow(await serve(script));
  const leader = lead();
  await leader.follow();
  await leader.follow();
  expect(leader.events).toEqual([
    { type: 'Warning', reason, message: expect.stringMatching(message) },
  ]);
  expect(reported()).toMatchObject({ reason, message: expect.stringMatching(message) });
  expect(planned()).toBeUndefined();
});

test('an unreachable server is asked again, more and more seldom, and then works', async () => {
  let isUp = false;
  follow(
    await serve((_, response) =>
      isUp ? response.end(indexOf('v1.36.1+k0s.0')) : response.socket?.destroy(),
    ),
  );
  const leader = lead();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 7; attempt++) {
    waits.push(Math.round((await leader.follow()) / 1_000));
    await clock.advance((waits.at(-1) ?? 0) * 1_000);
  }
  expect(waits).toEqual([23, 45, 90, 180, 360, 450, 450]);
  expect([leader.events.length, reported()?.reason]).toEqual([1, 'CheckFailed']);
  isUp = true;
  await leader.follow();
  expect([planned(), reported()?.reason]).toEqual(['v1.36.1+k0s.0', 'UpdateStarted']);
});

test('leaders that end while they ask a channel ask it more and more seldom, and a good answer ends that', async () => {
  let asked = 0;
  let isGood = false;
  const server = await offering(() => {
    asked++;
    return isGood ? indexOf('v1.36.0+k0s.0') : 'x';
  });
  follow(server);
  const pauses: number[] = [];
  for (let term = 0; term < 4; term++) {
    await lead({ writer: dyingAfterOneWrite() })
      .follow()
      .catch(() => undefined);
    const before = asked;
    const pause = await lead().follow();
    expect(asked).toBe(before);
    pauses.push(pause);
    await clock.advance(pause);
  }
  expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
  expect(new Set(pauses).size).toBe(4);
  isGood = true;
  await lead().follow();
  expect(reported()).not.toHaveProperty('failures');
});

test('leaders that follow each other within a minute report the same good answer, and count no failure', async () => {
  follow(await offering(() => indexOf('v1.36.0+k0s.0')));
  for (let term = 0; term < 3; term++) {
    const leader = lead();
    await leader.follow();
    expect(reported()?.reason).toBe('UpToDate');
    expect(reported()).not.toHaveProperty('failures');
    expect(leader.events).toHaveLength(term === 0 ? 1 : 0);
  }
});

test.each([false, true])(
  'a term that ends while it asks a channel leaves no failure behind (with an earlier report: %s)',
  async (hasReported) => {
    const stop = new AbortController();
    let isSilent = false;
    const script: Script = (_, response) => {
      if (isSilent) stop.abort(new Error('the controller stops'));
      else response.end(indexOf('v1.36.0+k0s.0'));
    };
    follow(await serve(script));
    if (hasReported) await lead().follow();
    const before = reported();
    isSilent = true;
    await expect(lead().follow(stop.signal)).rejects.toThrow('the controller stops');
    expect(reported()).toEqual(before);
    isSilent = false;
    await lead().follow();
    expect(reported()?.reason).toBe('UpToDate');
  },
);

test('a Plan that the API server refuses: the status and an Event say so, and it is tried again', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')));
  api.before(`create plans/${PLAN_NAME}`, () => {
    throw refusal(403, 'Forbidden');
  });
  const leader = lead();
  await expect(leader.follow()).rejects.toThrow('Forbidden');
  const message = 'the API server refuses to change the Plan: Forbidden by the test';
  expect(leader.events).toEqual([{ type: 'Warning', reason: 'CheckFailed', message }]);
  expect(reported()).toMatchObject({ reason: 'CheckFailed', message });
  await leader.follow();
  expect(reported()?.reason).toBe('UpdateStarted');
});

test('an UpdateConfig whose finalizer may not be removed holds up no other', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')));
  const finalizers = ['updateconfig.autopilot.k0sproject.io'];
  const metadata = { name: 'gone', uid: 'uid-gone', deletionTimestamp: rfc3339(START), finalizers };
  api.put(updateConfigs, { metadata, spec: { updateServer: '' } });
  api.before('patch updateconfigs/gone', () => {
    throw refusal(403, 'Forbidden');
  });
  await expect(lead().follow()).rejects.toThrow('Forbidden');
  expect(planned()).toBe('v1.36.1+k0s.0');
});

test('a server that sends a byte now and then is given up after 10 s, and that is reported', async () => {
  let bytes = 0;
  follow(await serve((_, response) => void response.write('x', () => bytes++)));
  const leader = lead();
  const looking = leader.follow();
  await vi.waitFor(() => expect(bytes).toBe(1), 60_000);
  await clock.advance(10_000);
  await looking;
  const message = 'the update server did not finish its answer within 10 s';
  expect(leader.events).toEqual([{ type: 'Warning', reason: 'CheckFailed', message }]);
  expect([reported(), planned()]).toEqual([
    expect.objectContaining({ reason: 'CheckFailed', message }),
    undefined,
  ]);
});

test('a token that may not be read: a Warning with the name of the Secret, no request, and it works once it may be', async () => {
  let asked = 0;
  follow(
    await serve((_, response) => {
      asked++;
      response.end(indexOf('v1.36.1+k0s.0'));
    }),
  );
  api.before('get secrets/update-server-token', () => {
    throw refusal(403, 'Forbidden');
  });
  const leader = lead();
  await leader.follow();
  expect([leader.events.map(({ type, reason }) => [type, reason]), asked, planned()]).toEqual([
    [['Warning', 'CheckFailed']],
    0,
    undefined,
  ]);
  await clock.advance(MINUTE);
  await leader.follow();
  expect([reported()?.reason, planned()]).toEqual(['UpdateStarted', 'v1.36.1+k0s.0']);
});

test.each([-DAY, DAY])(
  'the clock of the last leader was off by %i ms: the status is renewed',
  async (skew) => {
    let offered = 'v1.36.0+k0s.0';
    follow(await offering(() => indexOf(offered)));
    clock = new FakeClock(START + skew);
    await lead().follow();
    clock = new FakeClock(START);
    await lead().follow();
    expect(reported()).toMatchObject({ reason: 'UpToDate', checkedAt: rfc3339(START) });
    offered = 'v1.36.1+k0s.0';
    expect(await lead().follow()).toBeLessThanOrEqual(10 * MINUTE);
    expect(planned()).toBe(offered);
  },
);

test('two leaders at the seam of an election create one Plan, and agree on it', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')));
  const first = lead();
  const second = lead();
  await Promise.allSettled([first.follow(), second.follow()]);
  const { id } = api.read(plans, PLAN_NAME).spec;
  api.change(plans, PLAN_NAME, (plan) => ({
    ...plan,
    status: { state: 'SchedulableWait', commands: [] },
  }));
  await Promise.all([first.follow(), second.follow()]);
  expect(api.read(plans, PLAN_NAME).spec.id).toBe(id);
  expect(api.calls.filter((call) => call.startsWith('delete'))).toEqual([]);
});

test('a running Plan of a withdrawn release is aborted once', async () => {
  let withdrawn = {};
  follow(await offering(() => indexOf('v1.36.1+k0s.0', { withdrawn })));
  const leader = lead();
  await leader.follow();
  withdrawn = { 'v1.36.1+k0s.0': 'loses data' };
  await clock.advance(10 * MINUTE);
  await leader.follow();
  await leader.follow();
  expect(api.read(plans, PLAN_NAME).metadata.annotations?.[ABORT_ANNOTATION]).toBe(
    'release v1.36.1+k0s.0 was withdrawn: loses data',
  );
  expect(api.calls.filter((call) => call === `patch plans/${PLAN_NAME}`)).toHaveLength(1);
});

test('workers that a deleted Plan left behind get another one', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')));
  runs('v1.36.1+k0s.0');
  api.put(nodes, {
    metadata: { name: 'w1' },
    status: { nodeInfo: { kubeletVersion: 'v1.36.0+k0s' } },
  });
  await lead().follow();
  expect(reported()?.message).toBe('upgrading from v1.36.0+k0s to v1.36.1+k0s.0');
});

test('a channel two minor versions ahead is followed step by step', async () => {
  follow(
    await serve(({ url }, response) =>
      response.end(indexOf(url.includes('/v1.37/') ? 'v1.37.5+k0s.0' : 'v1.38.0+k0s.0')),
    ),
  );
  const leader = lead();
  await leader.follow();
  expect(planned()).toBe('v1.37.5+k0s.0');
  runs('v1.37.5+k0s.0');
  api.change(plans, PLAN_NAME, (plan) => ({
    ...plan,
    status: { state: 'Completed', commands: [] },
  }));
  await leader.follow();
  expect(planned()).toBe('v1.38.0+k0s.0');
});

test('a tick that no leader heard is made up for within ten minutes, and not later', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')), {
    upgradeStrategy: { type: 'cron', cron: '0 0 3 * * *' },
  });
  await clock.advance(3 * HOUR + 30 * MINUTE);
  expect(Math.round((await lead().follow()) / MINUTE)).toBe(23.5 * 60);
  expect(planned()).toBeUndefined();
  await clock.advance(23.5 * HOUR + 5 * MINUTE);
  await lead().follow();
  expect(planned()).toBe('v1.36.1+k0s.0');
});

test('a Plan that changes while its successor is created costs no tick: the next read creates it', async () => {
  let isTouched = false;
  const script: Script = (_, response) => {
    // The status of the Plan before arrives late: between the read of it and its replacement.
    if (isTouched) api.change(plans, PLAN_NAME, (plan) => plan);
    isTouched = false;
    response.end(indexOf(clock.now() > START + DAY ? 'v1.36.2+k0s.0' : 'v1.36.1+k0s.0'));
  };
  follow(await serve(script), { upgradeStrategy: { type: 'cron', cron: '0 0 3 * * *' } });
  const leader = lead();
  await leader.follow();
  await clock.advance(3 * HOUR);
  await leader.follow();
  runs('v1.36.1+k0s.0');
  api.change(plans, PLAN_NAME, (plan) => ({
    ...plan,
    status: { state: 'Completed', commands: [] },
  }));
  isTouched = true;
  await clock.advance(DAY);
  await expect(leader.follow()).rejects.toThrow('Conflict');
  expect(planned()).toBe('v1.36.1+k0s.0');
  await clock.advance(1_000);
  await leader.follow();
  expect([planned(), reported()?.reason]).toEqual(['v1.36.2+k0s.0', 'UpdateStarted']);
});

const ask = (): void =>
  api.change(updateConfigs, 'u', (config) => ({
    ...config,
    metadata: {
      ...config.metadata,
      annotations: { ...config.metadata.annotations, [CHECK_ANNOTATION]: 'now' },
    },
  }));

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
  await clock.advance(3 * HOUR);
  await leader.follow();
  expect(planned()).toBe(offered);
  offered = 'v1.36.2+k0s.0';
  await clock.advance(DAY);
  await leader.follow();
  runs('v1.36.1+k0s.0');
  api.change(plans, PLAN_NAME, (plan) => ({
    ...plan,
    status: { state: 'Completed', commands: [] },
  }));
  await leader.follow();
  expect([planned(), reported()?.reason]).toEqual(['v1.36.1+k0s.0', 'WindowClosed']);
  expect(leader.events.filter(({ reason }) => reason === 'UpdateStarted')).toHaveLength(1);
});

test('a person may ask for a check at any time; the token is read each time', async () => {
  const tokens: (string | undefined)[] = [];
  follow(
    await serve(({ headers }, response) => {
      tokens.push(headers['authorization']);
      response.end(indexOf('v1.36.0+k0s.0'));
    }),
  );
  const leader = lead();
  await leader.follow();
  await leader.follow();
  expect(tokens).toEqual([undefined]);
  api.put(secrets, {
    metadata: { name: 'update-server-token' },
    data: { token: Buffer.from('new').toString('base64') },
  });
  ask();
  await leader.follow();
  await leader.follow();
  expect(tokens).toEqual([undefined, 'Bearer new']);
  expect(reported()).toMatchObject({ obeyed: 'now', reason: 'UpToDate', current: 'v1.36.0+k0s.0' });
});

test('an UpdateConfig that cannot be read asks nobody, and lets the next one own the Plan', async () => {
  follow('http://127.0.0.1:1', {
    upgradeStrategy: {
      type: 'periodic',
      periodic: { days: ['Tuesdsay'], startTime: '22:00', length: '2h' },
    },
  });
  const metadata = {
    name: 'next',
    uid: 'uid-n',
    creationTimestamp: rfc3339(START + DAY),
    generation: 1,
  };
  const updateServer = await offering(() => indexOf('v1.36.1+k0s.0'));
  api.put(updateConfigs, { metadata, spec: { updateServer, upgradeStrategy: ALWAYS } });
  const leader = lead();
  await leader.follow();
  expect(leader.events.map(({ type, reason }) => [type, reason])).toEqual([
    ['Warning', 'InvalidConfig'],
    ['Normal', 'UpdateStarted'],
  ]);
  expect(reported()?.message).toContain('days[0]: "Tuesdsay" is no weekday; use Tuesday');
});

test('an UpdateConfig that waits for another one, or that cannot be read, also says that it was asked', async () => {
  follow(await offering(() => indexOf('v1.36.0+k0s.0')));
  for (const [name, updateServer] of [
    ['younger', 'http://127.0.0.1:1'],
    ['bad', 'ftp://127.0.0.1:1'],
  ] as const) {
    const metadata = { name, uid: name, generation: 1, creationTimestamp: rfc3339(START + DAY) };
    const annotations = { [CHECK_ANNOTATION]: 'now' };
    api.put(updateConfigs, {
      metadata: { ...metadata, annotations },
      spec: { updateServer, upgradeStrategy: ALWAYS },
    });
  }
  await lead().follow();
  expect(['younger', 'bad'].map((name) => statusOf(api.read(updateConfigs, name)))).toMatchObject([
    { reason: 'NotOwner', obeyed: 'now' },
    { reason: 'InvalidConfig', obeyed: 'now' },
  ]);
});

test.each<[string, NonNullable<UpdateConfig['spec']['upgradeStrategy']>]>([
  ['periodic', { type: 'periodic', periodic: { days: [], startTime: '03:00', length: '1h' } }],
  ['cron', { type: 'cron', cron: '0 0 3 * * *' }],
])('what a server offered before it failed is not started (%s)', async (type, upgradeStrategy) => {
  let isUp = true;
  const server = await serve((_, response) => {
    if (isUp) response.end(indexOf('v1.36.1+k0s.0'));
    else response.writeHead(503).end();
  });
  follow(server, { upgradeStrategy });
  const leader = lead();
  const until = async (end: number): Promise<void> => {
    while (clock.now() < end)
      await clock.advance(Math.min(await leader.follow(), end - clock.now()) || 1);
    await leader.follow();
  };
  await leader.follow();
  expect([planned(), reported()?.reason]).toEqual([undefined, 'WindowClosed']);
  isUp = false;
  await until(START + 3 * HOUR);
  expect([planned(), reported()?.reason]).toEqual([undefined, 'CheckFailed']);
  isUp = true;
  // The window is open when it answers again; a tick has passed.
  await until(START + (type === 'cron' ? 27 : 3.9) * HOUR);
  expect(planned()).toBe('v1.36.1+k0s.0');
  expect(leader.events.map(({ reason }) => reason)).toContain('UpdateStarted');
});

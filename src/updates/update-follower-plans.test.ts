/** Tests which Plans leaders create and abort, and what UpdateConfigs report about these Plans. */
import { beforeEach, expect, test } from 'vitest';
import { refusal } from '../../test/support/builders/memory-api.ts';
import {
  ALWAYS,
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
import { PLAN_NAME, plans } from '../api/autopilot/plan.ts';
import { type UpdateConfig, updateConfigs } from '../api/autopilot/update-config.ts';
import { ABORT_ANNOTATION } from '../engine/model/controls.ts';
import { nodes, secrets } from '../kube/resources.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { rfc3339 } from '../util/clock.ts';
import { CHECK_ANNOTATION, statusOf } from './status.ts';

beforeEach(beginAnew);

test('a Plan that the API server refuses: the status and an Event say so, and it is tried again', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')));
  world.api.before(`create plans/${PLAN_NAME}`, () => {
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
  world.api.put(updateConfigs, { metadata, spec: { updateServer: '' } });
  world.api.before('patch updateconfigs/gone', () => {
    throw refusal(403, 'Forbidden');
  });
  await expect(lead().follow()).rejects.toThrow('Forbidden');
  expect(planned()).toBe('v1.36.1+k0s.0');
});

function storeWith(config: UpdateConfig, more: Partial<UpdateConfig['metadata']>): void {
  world.api.put(updateConfigs, { ...config, metadata: { ...config.metadata, ...more } });
}

test.each<[string, (seen: UpdateConfig) => unknown]>([
  ['deleted', () => world.api.remove(updateConfigs, 'u')],
  ['being deleted', (seen) => storeWith(seen, { deletionTimestamp: rfc3339(START) })],
  ['changed', (seen) => storeWith(seen, { generation: 2 })],
  ['deleted and created again', (seen) => storeWith(seen, { uid: 'uid-2' })],
])(
  'an UpdateConfig that is %s, though the informer does not know it yet, starts no Plan',
  async (_name, happens) => {
    follow(await offering(() => indexOf('v1.36.1+k0s.0')));
    const seen = world.api.read(updateConfigs, 'u');
    happens(seen);
    const leader = lead();
    await leader.follow(undefined, [seen]);
    expect(planned()).toBeUndefined();
    expect(leader.events).toEqual([]);
  },
);

test('two leaders that are active at the same time create one Plan, and neither replaces it', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')));
  const first = lead();
  const second = lead();
  await Promise.allSettled([first.follow(), second.follow()]);
  const { id } = world.api.read(plans, PLAN_NAME).spec;
  world.api.change(plans, PLAN_NAME, (plan) => ({
    ...plan,
    status: { state: 'SchedulableWait', commands: [] },
  }));
  await Promise.all([first.follow(), second.follow()]);
  expect(world.api.read(plans, PLAN_NAME).spec.id).toBe(id);
  expect(world.api.calls.filter((call) => call.startsWith('delete'))).toEqual([]);
});

test('a running Plan of a withdrawn release is aborted once', async () => {
  let withdrawn = {};
  follow(await offering(() => indexOf('v1.36.1+k0s.0', { withdrawn })));
  const leader = lead();
  await leader.follow();
  withdrawn = { 'v1.36.1+k0s.0': 'loses data' };
  await world.clock.advance(10 * MINUTE);
  await leader.follow();
  await leader.follow();
  expect(world.api.read(plans, PLAN_NAME).metadata.annotations?.[ABORT_ANNOTATION]).toBe(
    'release v1.36.1+k0s.0 was withdrawn: loses data',
  );
  expect(world.api.calls.filter((call) => call === `patch plans/${PLAN_NAME}`)).toHaveLength(1);
});

test('workers that a deleted Plan left behind get another one', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')));
  runs('v1.36.1+k0s.0');
  world.api.put(nodes, {
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
  world.api.change(plans, PLAN_NAME, (plan) => ({
    ...plan,
    status: { state: 'Completed', commands: [] },
  }));
  await leader.follow();
  expect(planned()).toBe('v1.38.0+k0s.0');
});

test('a Plan that ended and left a controller behind: a warning and the metric name NotUpgraded', async () => {
  follow(await offering(() => indexOf('v1.36.1+k0s.0')));
  const metrics = createMetrics();
  const leader = lead({ metrics });
  await leader.follow();
  world.api.change(plans, PLAN_NAME, (plan) => ({
    ...plan,
    status: { state: 'Completed', commands: [] },
  }));
  await leader.follow();
  const message =
    'Plan autopilot for v1.36.1+k0s.0 has ended, but a controller still runs v1.36.0+k0s.0: check that the targets in spec.planSpec select all controllers, then delete Plan autopilot';
  expect(leader.events.at(-1)).toEqual({ type: 'Warning', reason: 'NotUpgraded', message });
  expect(reported()).toMatchObject({ reason: 'NotUpgraded', message });
  const { body } = await metrics.expose();
  const states = body.split('\n').filter((line) => line.startsWith('refit_update_info{'));
  expect(states).toEqual([expect.stringContaining('reason="NotUpgraded"')]);
  // When the controller has the version, neither the status nor the metrics report `NotUpgraded` any more.
  runs('v1.36.1+k0s.0');
  await leader.follow();
  expect(reported()?.reason).toBe('UpToDate');
  expect((await metrics.expose()).body).not.toContain('reason="NotUpgraded"');
});

test('a person can request a check at any time, and each check reads the token again', async () => {
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
  world.api.put(secrets, {
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
  world.api.put(updateConfigs, { metadata, spec: { updateServer, upgradeStrategy: ALWAYS } });
  const leader = lead();
  await leader.follow();
  expect(leader.events.map(({ type, reason }) => [type, reason])).toEqual([
    ['Warning', 'InvalidConfig'],
    ['Normal', 'UpdateStarted'],
  ]);
  expect(reported()?.message).toContain('days[0]: "Tuesdsay" is not a weekday; use Tuesday');
});

test('an UpdateConfig that waits for another one, or that cannot be read, also says that it was asked', async () => {
  follow(await offering(() => indexOf('v1.36.0+k0s.0')));
  for (const [name, updateServer] of [
    ['younger', 'http://127.0.0.1:1'],
    ['bad', 'ftp://127.0.0.1:1'],
  ] as const) {
    const metadata = { name, uid: name, generation: 1, creationTimestamp: rfc3339(START + DAY) };
    const annotations = { [CHECK_ANNOTATION]: 'now' };
    world.api.put(updateConfigs, {
      metadata: { ...metadata, annotations },
      spec: { updateServer, upgradeStrategy: ALWAYS },
    });
  }
  await lead().follow();
  expect(
    ['younger', 'bad'].map((name) => statusOf(world.api.read(updateConfigs, name))),
  ).toMatchObject([
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
    while (world.clock.now() < end)
      await world.clock.advance(Math.min(await leader.follow(), end - world.clock.now()) || 1);
    await leader.follow();
  };
  await leader.follow();
  expect([planned(), reported()?.reason]).toEqual([undefined, 'WindowClosed']);
  isUp = false;
  await until(START + 3 * HOUR);
  expect([planned(), reported()?.reason]).toEqual([undefined, 'CheckFailed']);
  isUp = true;
  // When the server answers again, the window is open, or a tick of the schedule has passed.
  await until(START + (type === 'cron' ? 27 : 3.9) * HOUR);
  expect(planned()).toBe('v1.36.1+k0s.0');
  expect(leader.events.map(({ reason }) => reason)).toContain('UpdateStarted');
});

/** Tests the messages of the conditions of a plan, the sentence for people on it, and the stalls in its status. */
import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { Wait } from '../model/decision.ts';
import { because, type ReportedEvent } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { CONDITIONS_ANNOTATION, MESSAGE_ANNOTATION } from '../model/written-conditions.ts';
import { OwnWrites } from '../snapshot/world.ts';
import { blockedBy, conditionsOf, writeConditions, writeStalls } from './conditions.ts';

const RUNNING = buildRollout([buildStage('worker', ['w1'])]);
const FAILURE = because('TargetFailed', 'w1: 404');
const wait = (code: Wait['reason']['code'], message: string, agoMs = 10_000): Wait => ({
  gate: 'gate',
  reason: because(code, message),
  since: later(-agoMs),
});

function messagesOf(rollout: Rollout, waits: readonly Wait[] = []): Record<string, unknown> {
  return Object.fromEntries(
    conditionsOf(rollout, waits, [], T0).map(({ type, message }) => [type, message]),
  );
}

test.each<[string, Rollout, readonly Wait[], Record<string, string>]>([
  [
    'runs',
    RUNNING,
    [],
    {
      Progressing: 'the plan is running',
      Blocked:
        'no target has waited for ten seconds or longer for anything but a free slot or an earlier stage',
      Degraded: 'no target has failed',
    },
  ],
  [
    'waits and has a failed target',
    { ...RUNNING, reason: FAILURE },
    [wait('NodeNotReady', 'w1 is not Ready')],
    { Progressing: 'the plan is running', Blocked: 'w1 is not Ready', Degraded: 'w1: 404' },
  ],
  [
    'has ended for a reason',
    { ...RUNNING, phase: 'failed', reason: FAILURE },
    [wait('NodeNotReady', 'w1 is not Ready')],
    {
      Progressing: 'w1: 404',
      Blocked: 'the plan has ended, so no target waits',
      Degraded: 'w1: 404',
    },
  ],
  [
    'has failed without a reason',
    { ...RUNNING, phase: 'failed' },
    [],
    {
      Progressing: 'Plan plan is failed',
      Blocked: 'the plan has ended, so no target waits',
      Degraded: 'failed',
    },
  ],
  [
    'is done',
    { ...RUNNING, phase: 'done' },
    [],
    {
      Progressing: 'Plan plan is done',
      Blocked: 'the plan has ended, so no target waits',
      Degraded: 'no target has failed',
    },
  ],
])('the conditions of a plan that %s have these messages', (_name, rollout, waits, messages) => {
  expect(messagesOf(rollout, waits)).toEqual(messages);
});

/** Writes the conditions. Resolves with the sentence on the plan, the Events, and when to write again. */
async function written(rollout: Rollout, waits: readonly Wait[], annotations = {}) {
  const api = new MemoryApi();
  const plan = api.put(tableDialect.plans, {
    ...buildTablePlan({}),
    metadata: { name: 'plan', annotations },
  });
  const events: ReportedEvent[] = [];
  const parts = { client: api.client, ownWrites: new OwnWrites(), dialect: tableDialect };
  const onEvent = (event: ReportedEvent): void => void events.push(event);
  const laterMs = await writeConditions(
    { ...parts, onEvent, writtenAt: new Map(), now: T0 },
    plan,
    rollout,
    waits,
  );
  const { annotations: said } = api.read(tableDialect.plans, 'plan').metadata;
  return {
    sentence: said?.[MESSAGE_ANNOTATION],
    events: events.map(({ type, reason }) => `${type} ${reason.code}`),
    laterMs,
  };
}

const AT_WORK = wait('NodeNotReady', 'w1 is not\nReady');

test.each<[string, Rollout, readonly Wait[], string | undefined]>([
  ['its wait', { ...RUNNING, reason: FAILURE }, [AT_WORK], 'w1 is not Ready (refit why)'],
  [
    'its failure, if it waits for nothing',
    { ...RUNNING, reason: FAILURE },
    [],
    'w1: 404 (refit why)',
  ],
  [
    'why it ended, and no wait',
    { ...RUNNING, phase: 'failed', reason: FAILURE },
    [AT_WORK],
    'w1: 404 (refit why)',
  ],
  ['nothing, if there is nothing to say', RUNNING, [], undefined],
  ['nothing after an end without a reason', { ...RUNNING, phase: 'done' }, [AT_WORK], undefined],
])('the sentence on a plan says %s', async (_name, rollout, waits, sentence) => {
  expect((await written(rollout, waits)).sentence).toBe(sentence);
});

test('a sentence that is not true any more is removed', async () => {
  const { sentence } = await written(RUNNING, [], { [MESSAGE_ANNOTATION]: 'old' });
  expect(sentence).toBeUndefined();
});

test('a wait that becomes long enough in four seconds is written then, and no Event is sent before', async () => {
  const young = wait('NodeNotReady', 'w1 is not Ready', 6_000);
  expect(await written(RUNNING, [young])).toMatchObject({ events: [], laterMs: 4_000 });
  expect(await written(RUNNING, [AT_WORK])).toMatchObject({
    events: ['Warning NodeNotReady'],
    laterMs: undefined,
  });
});

test('only the message of a True condition with the same reason is read back', () => {
  const conditions = [
    { type: 'Blocked', status: 'True', reason: 'CannotDecide', message: 'asked in vain' },
    { type: 'Degraded', status: 'False', reason: 'NothingFailed', message: 'well' },
  ];
  const plan = {
    metadata: {
      name: 'plan',
      annotations: { [CONDITIONS_ANNOTATION]: JSON.stringify(conditions) },
    },
  };
  expect(blockedBy(plan, 'CannotDecide')).toBe('asked in vain');
  expect(blockedBy(plan, 'NoFreeSlot')).toBeUndefined();
  expect(blockedBy({ metadata: { name: 'plan' } }, 'CannotDecide')).toBeUndefined();
});

test('a stall is recorded as lasting after ten seconds, and the next one says when to look again', async () => {
  const api = new MemoryApi();
  const plan = api.put(tableDialect.plans, { ...buildTablePlan({}), metadata: { name: 'plan' } });
  const recorded: (readonly [string, boolean])[] = [];
  const dialect = {
    ...tableDialect,
    reporting: {
      stalls: {
        record: (of: typeof plan, lasting: ReadonlyMap<string, boolean>) => {
          recorded.push(...lasting);
          return of;
        },
        of: () => [],
      },
    },
  };
  const effects = {
    client: api.client,
    ownWrites: new OwnWrites(),
    dialect,
  } as unknown as Parameters<typeof writeStalls>[0];
  const since = new Map([
    ['the image cannot be pulled', T0 - 10_000],
    ['no node has room', T0 - 4_000],
    ['the pod exits', T0 - 1_000],
  ]);
  expect(await writeStalls(effects, plan, since, T0)).toBe(6_000);
  expect(recorded).toEqual([
    ['the image cannot be pulled', true],
    ['no node has room', false],
    ['the pod exits', false],
  ]);
  expect(await writeStalls(effects, plan, new Map(), T0)).toBeUndefined();
});

/** Returns a leader that writes conditions, with the plan that it writes to. */
function writer() {
  const api = new MemoryApi();
  api.put(tableDialect.plans, { ...buildTablePlan({}), metadata: { name: 'plan' } });
  const remembered: string[] = [];
  const events: string[] = [];
  const aborts: unknown[] = [];
  const { client } = api;
  const { signal: abort } = new AbortController();
  const ownWrites = new OwnWrites();
  const parts = {
    dialect: tableDialect,
    client: {
      ...client,
      replace: async (...args: Parameters<KubeClient['replace']>) => {
        aborts.push(args[2]?.abort, args[2]?.subresource);
        return await client.replace(...args);
      },
    } as KubeClient,
    ownWrites: Object.assign(Object.create(ownWrites) as OwnWrites, {
      remember: (_resource: unknown, { metadata }: KubeObject) => remembered.push(metadata.name),
    }),
    abort,
    onEvent: ({ reason }: ReportedEvent) => void events.push(reason.code),
    writtenAt: new Map<string, number>(),
  };
  const write = async (waits: readonly Wait[], now = T0, rollout = RUNNING) => {
    const plan = api.read(tableDialect.plans, 'plan');
    return await writeConditions({ ...parts, now }, plan, rollout, waits);
  };
  return { api, abort, aborts, events, remembered, write };
}

test('a write of conditions is remembered, ends with the term, and is not repeated without a change', async () => {
  const { api, abort, aborts, remembered, write } = writer();
  await write([AT_WORK]);
  await write([AT_WORK], T0 + 120_000);
  expect(api.calls).toEqual(['replace plans/plan']);
  expect([aborts, remembered]).toEqual([[abort, undefined], ['plan']]);
});

test('a change of a reason and a missing sentence are written at once', async () => {
  const { api, write } = writer();
  await write([AT_WORK]);
  await write([wait('DrainBlocked', 'w1 is not Ready')], T0 + 1000);
  expect(api.calls).toHaveLength(2);
  api.change(tableDialect.plans, 'plan', (plan) => {
    const { [MESSAGE_ANNOTATION]: _message, ...annotations } = plan.metadata.annotations ?? {};
    return { ...plan, metadata: { ...plan.metadata, annotations } };
  });
  await write([wait('DrainBlocked', 'w1 is not Ready')], T0 + 2000);
  expect(api.calls).toHaveLength(3);
});

test('another message is written at once if the clock was set back', async () => {
  const { api, write } = writer();
  await write([AT_WORK]);
  expect(await write([wait('NodeNotReady', 'w7 is not Ready')], T0)).toBe(60_000);
  expect(api.calls).toHaveLength(1);
  await write([wait('NodeNotReady', 'w7 is not Ready')], T0 - 1000);
  expect(api.calls).toHaveLength(2);
});

test('a conflict is ignored: nothing is remembered, and no Event is sent', async () => {
  const { api, events, remembered, write } = writer();
  api.before('replace', () => {
    throw refusal(409, 'Conflict');
  });
  const young = wait('NodeNotReady', 'w1 is not Ready', 6000);
  expect(await write([wait('Paused', 'x'), young])).toBe(4000);
  expect([events, remembered]).toEqual([[], []]);
});

test('a stall that changes the status of the plan is written there and remembered, and a conflict is ignored', async () => {
  const api = new MemoryApi();
  const plan = api.put(tableDialect.plans, { ...buildTablePlan({}), metadata: { name: 'plan' } });
  const remembered: string[] = [];
  const effects = {
    client: api.client,
    ownWrites: {
      remember: (_resource: unknown, { metadata }: KubeObject) => remembered.push(metadata.name),
    },
    dialect: {
      ...tableDialect,
      reporting: {
        stalls: { record: (of: typeof plan) => ({ ...of, status: RUNNING }), of: () => [] },
      },
    },
  } as unknown as Parameters<typeof writeStalls>[0];
  await writeStalls(effects, plan, new Map(), T0);
  expect([api.calls, remembered]).toEqual([['replace plans/plan/status'], ['plan']]);
  await writeStalls(effects, plan, new Map(), T0);
  expect(remembered).toEqual(['plan']);
});

test('a dialect that shows no stalls has nothing to write', async () => {
  const api = new MemoryApi();
  const plan = api.put(tableDialect.plans, { ...buildTablePlan({}), metadata: { name: 'plan' } });
  const effects = { client: api.client, ownWrites: new OwnWrites(), dialect: tableDialect };
  const since = new Map([['no node has room', T0]]);
  expect(
    await writeStalls(effects as unknown as Parameters<typeof writeStalls>[0], plan, since, T0),
  ).toBeUndefined();
  expect(api.calls).toEqual([]);
});

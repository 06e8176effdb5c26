/** Tests the messages of the conditions of a plan, the sentence for people on it, and the stalls in its status. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
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

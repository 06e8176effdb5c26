/** Tests the conditions of a plan while it runs, while it is blocked, and after its end. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { Wait } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { runIdOn } from '../model/runs.ts';
import { CONDITIONS_ANNOTATION, conditionsIn } from '../model/written-conditions.ts';
import { OwnWrites } from '../snapshot/world.ts';
import { blockedEvent, conditionsOf, writeConditions } from './conditions.ts';

const RUNNING = buildRollout([buildStage('worker', ['w1'])]);
const wait = (gate: string, code: Wait['reason']['code']): Wait => ({
  gate,
  reason: because(code, 'why'),
  since: later(-10_000),
});

function told(rollout: Rollout, waits: readonly Wait[] = []): string[] {
  return conditionsOf(rollout, waits, [], T0).map(
    ({ type, status, reason }) => `${type}=${status} ${reason}`,
  );
}

test.each<[string, Rollout, readonly Wait[], string[]]>([
  [
    'a rollout that runs is Progressing',
    RUNNING,
    [wait('slots', 'NoFreeSlot'), wait('stages', 'EarlierStage')],
    ['Blocked=False NothingWaits', 'Degraded=False NothingFailed', 'Progressing=True InFlight'],
  ],
  [
    'a rollout that is held back by a gate has the condition Blocked',
    RUNNING,
    [wait('node-ready', 'NodeNotReady')],
    ['Blocked=True NodeNotReady', 'Degraded=False NothingFailed', 'Progressing=True InFlight'],
  ],
  [
    'a rollout whose probe was not made yet is not Blocked',
    RUNNING,
    [wait('drain-possible', 'DrainPreviewUnknown')],
    ['Blocked=False NothingWaits', 'Degraded=False NothingFailed', 'Progressing=True InFlight'],
  ],
  [
    'a rollout that failed is Degraded',
    { ...RUNNING, phase: 'failed', reason: because('TargetFailed', 'w1: 404') },
    [],
    ['Blocked=False NothingWaits', 'Degraded=True TargetFailed', 'Progressing=False TargetFailed'],
  ],
  [
    'a rollout that ended while targets waited is not Blocked',
    { ...RUNNING, phase: 'failed' },
    [wait('window-open', 'WindowClosed')],
    ['Blocked=False NothingWaits', 'Degraded=True TargetFailed', 'Progressing=False TargetFailed'],
  ],
  [
    'a rollout that is done is not Degraded',
    { ...RUNNING, phase: 'done' },
    [],
    ['Blocked=False NothingWaits', 'Degraded=False NothingFailed', 'Progressing=False Completed'],
  ],
])('%s', (_name, rollout, waits, conditions) => {
  expect(told(rollout, waits)).toEqual(conditions);
});

test.each(['done', 'failed', 'incomplete', 'invalid'] as const)(
  'the condition Blocked of a plan that is %s says that the plan has ended',
  (phase) => {
    const blocked = conditionsOf({ ...RUNNING, phase }, [], [], T0).find(
      ({ type }) => type === 'Blocked',
    );
    expect(blocked?.message).toBe('the plan has ended, so no target waits');
  },
);

test('a wait that has just begun is not reported yet', () => {
  const waits = [{ ...wait('node-ready', 'NodeNotReady'), since: later(-9_000) }];
  expect(told(RUNNING, waits)).toContain('Blocked=False NothingWaits');
});

test('the time of a condition changes with its status, not with its message', () => {
  const first = conditionsOf(RUNNING, [wait('node-ready', 'NodeNotReady')], [], T0);
  const second = conditionsOf(RUNNING, [wait('drain', 'DrainBlocked')], first, T0 + 1000);
  const third = conditionsOf(RUNNING, [], second, T0 + 2000);
  const times = [first, second, third].map(
    (list) => list.find(({ type }) => type === 'Blocked')?.lastTransitionTime,
  );
  expect(times).toEqual([later(0), later(0), later(2000)]);
});

test.each<[string, boolean, Wait, Wait['reason']['code'] | undefined, string | undefined]>([
  [
    'a budget holds a node that is under way',
    false,
    wait('drain', 'DrainBlocked'),
    undefined,
    'DrainBlocked',
  ],
  ['pods take their time', false, wait('drain', 'Draining'), undefined, undefined],
  ['a pause in place of a window', true, wait('not-paused', 'Paused'), 'WindowClosed', 'Paused'],
  ['the same as before', true, wait('not-paused', 'Paused'), 'Paused', undefined],
  ['what the record tells of', true, wait('not-paused', 'Paused'), undefined, undefined],
])('an event beside those of the record: %s', (_name, blocked, now, before, code) => {
  const known = conditionsOf(RUNNING, before ? [wait('gate', before)] : [], [], T0);
  expect(blockedEvent({ ...RUNNING, blocked }, [now], known, T0)?.reason.code).toBe(code);
});

const WHOLE = {
  type: 'Blocked',
  status: 'True',
  reason: 'Paused',
  message: 'why',
  lastTransitionTime: later(0),
};

test.each<[string, unknown, boolean]>([
  ['a list of conditions', [WHOLE], true],
  [
    'one that only later releases know more of',
    [{ ...WHOLE, observedGeneration: 3, more: {} }],
    true,
  ],
  ['one without words', [{ type: 'Blocked', status: 'True' }], true],
  ['nothing in the list', [null], false],
  ['no object in the list', [WHOLE, 'Blocked'], false],
  ['a condition without a status', [{ type: 'Blocked' }], false],
  ['a type that is no text', [{ ...WHOLE, type: 1 }], false],
  ['a time that is no text', [{ ...WHOLE, lastTransitionTime: 1 }], false],
  ['no list', { Blocked: true }, false],
  ['nothing', null, false],
])(
  'what somebody wrote into the annotation is taken or absent, never an error: %s',
  (_name, content, isTaken) => {
    expect(conditionsIn(JSON.stringify(content))).toEqual(isTaken ? content : []);
  },
);

test('an annotation with conditions that is no JSON counts as absent', () => {
  expect([conditionsIn('[{'), conditionsIn('')]).toEqual([[], []]);
});

test('an unreadable conditions annotation is replaced', async () => {
  const api = new MemoryApi();
  const broken = { metadata: { name: 'plan', annotations: { [CONDITIONS_ANNOTATION]: '[null]' } } };
  const plan = api.put(tableDialect.plans, { ...buildTablePlan({}), ...broken });
  const parts = {
    client: api.client,
    ownWrites: new OwnWrites(),
    dialect: tableDialect,
    onEvent: () => undefined,
    writtenAt: new Map(),
    now: T0,
  };
  await writeConditions(parts, plan, RUNNING, []);
  const written = api.read(tableDialect.plans, 'plan').metadata.annotations?.[
    CONDITIONS_ANNOTATION
  ];
  expect(conditionsIn(written).map(({ type }) => type)).toEqual([
    'Blocked',
    'Degraded',
    'Progressing',
  ]);
});

test('a message is written again when it names another node, at most once a minute, and not for a count', async () => {
  const api = new MemoryApi();
  api.put(tableDialect.plans, { ...buildTablePlan({}), metadata: { name: 'plan' } });
  const parts = {
    client: api.client,
    ownWrites: new OwnWrites(),
    dialect: tableDialect,
    writtenAt: new Map(),
  };
  const messages: (string | undefined)[] = [];
  const write = async (message: string, now: number): Promise<number | undefined> => {
    const waits = [
      { gate: 'drain', reason: because('DrainBlocked', message), since: later(-10_000) },
    ];
    const plan = api.read(tableDialect.plans, 'plan');
    const writing = { ...parts, onEvent: () => undefined, now: T0 + now };
    const againMs = await writeConditions(writing, plan, RUNNING, waits);
    const { annotations } = api.read(tableDialect.plans, 'plan').metadata;
    messages.push(
      conditionsIn(annotations?.[CONDITIONS_ANNOTATION]).find(({ type }) => type === 'Blocked')
        ?.message,
    );
    return againMs;
  };
  const times = [
    await write('w1 has 12 pods left for 3m5s', 0),
    await write('w1 has 11 pods left for 3m50s', 70_000),
    await write('w7 has 9 pods left', 80_000),
    await write('w8 has 9 pods left', 100_000),
    await write('w8 has 8 pods left', 140_000),
  ];
  const first = 'w1 has 12 pods left for 3m5s';
  expect(messages).toEqual([
    first,
    first,
    'w7 has 9 pods left',
    'w7 has 9 pods left',
    'w8 has 8 pods left',
  ]);
  expect(times).toEqual([undefined, undefined, undefined, 40_000, undefined]);
});

test('the id of a recorded run is written once, and again for the next run', async () => {
  const api = new MemoryApi();
  api.put(tableDialect.plans, { ...buildTablePlan({}), metadata: { name: 'plan' } });
  const ids: (string | undefined)[] = [];
  const write = async (rollout: Rollout): Promise<void> => {
    const plan = api.read(tableDialect.plans, 'plan');
    const parts = { client: api.client, ownWrites: new OwnWrites(), dialect: tableDialect };
    const writing = { ...parts, onEvent: () => undefined, writtenAt: new Map(), now: T0 };
    await writeConditions(writing, plan, rollout, []);
    const written = api.read(tableDialect.plans, 'plan');
    ids.push(runIdOn(written, undefined) ?? runIdOn(written, 7));
  };
  const { resourceVersion } = api.read(tableDialect.plans, 'plan').metadata;
  await write({ ...RUNNING, phase: 'new' });
  await write({ ...RUNNING, phase: 'running' });
  const once = api.read(tableDialect.plans, 'plan').metadata.resourceVersion;
  await write({ ...RUNNING, phase: 'running' });
  expect(api.read(tableDialect.plans, 'plan').metadata.resourceVersion).toBe(once);
  expect(once).not.toBe(resourceVersion);
  await write({ ...RUNNING, phase: 'running', id: 'run-2', run: 7 });
  expect(ids).toEqual([undefined, 'run-1', 'run-1', 'run-2']);
});

test('a plan that is refused because its id is empty is written once, and not in every turn', async () => {
  const api = new MemoryApi();
  api.put(tableDialect.plans, { ...buildTablePlan({}), metadata: { name: 'plan' } });
  const versions: (string | undefined)[] = [];
  for (let turn = 0; turn < 3; turn++) {
    const plan = api.read(tableDialect.plans, 'plan');
    const parts = { client: api.client, ownWrites: new OwnWrites(), dialect: tableDialect };
    const writing = { ...parts, onEvent: () => undefined, writtenAt: new Map(), now: T0 };
    await writeConditions(writing, plan, { ...RUNNING, phase: 'invalid', id: '' }, []);
    const written = api.read(tableDialect.plans, 'plan');
    versions.push(written.metadata.resourceVersion);
    expect(runIdOn(written, undefined)).toBeUndefined();
  }
  expect(new Set(versions).size).toBe(1);
});

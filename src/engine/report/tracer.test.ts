/** Tests what the spans of a run say, which waits they have, and when the tracer sends or forgets them. */
import { expect, test } from 'vitest';
import { failed, NONE, succeeded, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { type TablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Span } from '../../traces/otlp.ts';
import { assess } from '../assess/assess.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Wait } from '../model/decision.ts';
import type { Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout, Stage } from '../model/rollout.ts';
import { spanOf, traceIdOf } from './spans.ts';
import { createTracer, RESEND_MS } from './tracer.ts';
import type { Turn } from './turn.ts';

const PLAN = { metadata: { name: 'plan', namespace: 'ns' } };
const NOW = T0 + MINUTE;

interface Given {
  readonly states?: Readonly<Record<string, RecordedState>>;
  readonly facts?: Readonly<Record<string, KnownFacts>>;
  readonly rollout?: Partial<Rollout>;
  readonly stage?: Partial<Stage>;
  readonly now?: number;
}

function turnOf({ states = {}, facts, rollout, stage, now = NOW }: Given): Turn {
  const targets = Object.entries(states).map(([name, state]) =>
    buildTarget(name, state, { since: later(30_000) }),
  );
  const made = buildRollout([buildStage('worker', targets, { version: 'v2', ...stage })], rollout);
  return { plan: PLAN, assessment: assess(buildSnapshot(made, facts), buildPolicy(), now) };
}

/** Returns the tracer of a leader whose exporter has room for `room` spans, and the sent spans. */
function leader(room = 1000, dialect: Dialect<TablePlan> = tableDialect) {
  const spans: Span[] = [];
  const state = { room };
  const add = (more: readonly Span[]): void => void spans.push(...more);
  const tracer = createTracer(dialect, { room: () => state.room, add });
  const follow = (given: Given, waits: readonly Wait[] = []): number | undefined => {
    const turn = turnOf(given);
    return tracer.follow(turn, turn.assessment.snapshot.rollout, waits);
  };
  return { spans, state, tracer, follow };
}

const REPORTED: Observation = {
  kind: 'succeeded',
  attempt: later(0),
  since: later(20_000),
  report: { from: 'v1', spent: { Restart: 8000 } },
};
const DONE: Given = {
  states: { w1: 'done' },
  facts: { w1: { observation: REPORTED } },
};
const OVER: Given = { ...DONE, rollout: { phase: 'done' } };

test('the span of a node says what was done there, and its steps name the node', () => {
  const { spans, follow } = leader();
  follow(DONE);
  expect(spans.map(({ name, attributes }) => [name, attributes])).toEqual([
    [
      'upgrade node',
      {
        'k8s.node.name': 'w1',
        'refit.target': 'w1',
        'refit.role': 'worker',
        'refit.version': 'v2',
        'refit.version.before': 'v1',
        'refit.state': 'done',
        'refit.rolled_back': undefined,
      },
    ],
    ['Restart', { 'k8s.node.name': 'w1' }],
  ]);
});

test('a node that keeps its version is prepared, and a step without a name is called step', () => {
  const { spans, follow } = leader();
  const observation = { ...REPORTED, report: { spent: { '': 1000, bad: Number.NaN } } };
  follow({ ...DONE, stage: { keepsVersion: true }, facts: { w1: { observation } } });
  expect(spans.map(({ name, from, to }) => `${name} ${from - T0} ${to - T0}`)).toEqual([
    'prepare node 0 20000',
    'step 0 1000',
    'bad 1000 1000',
  ]);
});

test('the span of a run names its plan, its versions and its counts', () => {
  const { spans, follow } = leader();
  follow({
    states: { w1: 'done', w2: 'failed', w3: 'pending' },
    facts: { w1: { observation: REPORTED, asked: 'v1.5' }, w2: { observation: failed('404') } },
    rollout: { phase: 'failed', reason: because('TargetFailed', 'w2:\n404') },
  });
  expect(spans.at(-1)).toMatchObject({
    name: 'rollout',
    attributes: {
      'refit.plan': 'table/ns/plan',
      'refit.dialect': 'table',
      'refit.run': 'plan-uid/run-1',
      'refit.version': 'v1.5, v2',
      'refit.phase': 'failed',
      'refit.targets': 3,
      'refit.targets.done': 1,
      'refit.targets.failed': 1,
    },
    status: { isGood: false, message: 'w2: 404' },
  });
});

test('a run without a version has an empty one, and a plan that stands for another object has its name', () => {
  const dialect: Dialect<TablePlan> = {
    ...tableDialect,
    nodeRollouts: { subjectOf: () => ({ name: 'pool', namespace: 'clusters' }) },
  };
  const { spans, follow } = leader(1000, dialect);
  follow({ ...OVER, stage: { version: '' } });
  expect(spans.at(-1)?.attributes).toMatchObject({
    'refit.plan': 'table/clusters/pool',
    'refit.version': '',
  });
});

test.each([
  [512, 'x'.repeat(512)],
  [513, `${'x'.repeat(511)}…`],
])('a text of %i characters is sent with at most 512 characters', (length, shown) => {
  const { spans, follow } = leader();
  follow({
    states: { w1: 'failed' },
    facts: { w1: { observation: failed('x'.repeat(length)) } },
  });
  expect(spans[0]?.status?.message).toBe(shown);
});

test('a new or refused plan has no trace', () => {
  const { spans, follow } = leader();
  for (const phase of ['new', 'invalid'] as const)
    expect(follow({ ...OVER, rollout: { phase } })).toBeUndefined();
  expect(spans).toEqual([]);
  expect(
    traceIdOf(turnOf({ rollout: { phase: 'new' } }).assessment.snapshot.rollout),
  ).toBeUndefined();
});

test('an attempt without a time has no span', () => {
  const { spans, follow } = leader();
  follow({ ...DONE, facts: { w1: { observation: { ...REPORTED, attempt: 'first' } } } });
  expect(spans).toEqual([]);
});

test('the ids of traces and spans are the same in every release', () => {
  const { spans, follow } = leader();
  follow(OVER);
  expect(spans.map(({ traceId, spanId }) => `${traceId} ${spanId}`)).toEqual([
    'cb6bad294b344af40cbe985d2542172b efd8a2fd9306f131',
    'cb6bad294b344af40cbe985d2542172b 101a857189ebf9f1',
    'cb6bad294b344af40cbe985d2542172b 31259e3067703641',
  ]);
});

const wait = (more: Partial<Wait> = {}): Wait => ({
  target: 'w1',
  gate: 'window-open',
  reason: because('WindowClosed', 'closed'),
  since: later(5000),
  ...more,
});

/** Returns the waits of each span, as the reason, the target and the seconds. */
function waitsIn(spans: readonly Span[]): [string, string[]][] {
  return spans.map(({ name, events = [] }) => [
    name,
    events.map(({ attributes }) =>
      ['refit.reason', 'refit.target', 'refit.until', 'refit.seconds']
        .map((key) => attributes[key] ?? '-')
        .join(' '),
    ),
  ]);
}

test('a wait belongs to its node if it began with the attempt or later, and else to the run', () => {
  const { spans, follow } = leader();
  const atWork: Given = {
    states: { w1: 'intended' },
    facts: { w1: { observation: working('x') } },
  };
  follow({ ...atWork, now: T0 + 10_000 }, [
    wait({ since: later(0), ends: 'it opens' }),
    wait({ since: later(-1000) }),
    wait({ target: 'w2' }),
    { gate: 'not-paused', reason: because('Paused', 'x'), since: later(2000) },
    wait({ gate: 'slots' }),
  ]);
  follow({ ...atWork, now: T0 + 12_000 }, [wait({ since: later(0), ends: 'it opens' })]);
  follow(OVER);
  expect(waitsIn(spans)).toEqual([
    ['upgrade node', ['WindowClosed w1 it opens 12']],
    ['Restart', []],
    ['rollout', ['WindowClosed w1 - 11', 'WindowClosed w2 - 5', 'Paused - - 8']],
  ]);
});

test('a run keeps at most a hundred waits, and goes on to measure those', () => {
  const { spans, follow } = leader();
  const many = Array.from({ length: 101 }, (_, index) => wait({ target: `n${index}` }));
  const open: Given = { states: { w1: 'pending' }, rollout: { phase: 'running' } };
  follow({ ...open, now: T0 + 10_000 }, many);
  follow({ ...open, now: T0 + 15_000 }, many);
  follow(OVER);
  const [, told = []] = waitsIn(spans).at(-1) ?? [];
  expect(told).toHaveLength(100);
  expect(told.at(-1)).toBe('WindowClosed n99 - 10');
});

test('the waits of a run are sent once, also if the run goes on after its end', () => {
  const { spans, follow } = leader();
  follow({ states: { w1: 'pending' } }, [wait({ target: 'w2' })]);
  follow(OVER);
  follow({ ...DONE, rollout: { phase: 'running' } });
  follow(OVER);
  expect(waitsIn(spans.filter(({ name }) => name === 'rollout'))).toEqual([
    ['rollout', ['WindowClosed w2 - 55']],
    ['rollout', []],
  ]);
});

test('a node needs room for all its spans, and a run needs room for one', () => {
  const { spans, state, follow } = leader(20);
  expect(follow(OVER)).toBe(5000);
  expect(spans).toEqual([]);
  state.room = 21;
  follow(DONE);
  expect(spans).toHaveLength(2);
  state.room = 0;
  expect(follow(OVER)).toBe(5000);
  state.room = 1;
  expect(follow(OVER)).toBeUndefined();
  expect(spans).toHaveLength(3);
});

test('another run of the plan, and a plan that was forgotten, are sent from the start', () => {
  const { spans, tracer, follow } = leader();
  follow(OVER);
  follow(OVER);
  expect(spans).toHaveLength(3);
  follow({ ...OVER, rollout: { phase: 'done', id: 'run-2' } });
  expect(spans).toHaveLength(6);
  tracer.forget('ns/plan');
  follow({ ...OVER, rollout: { phase: 'done', id: 'run-2' } });
  expect(spans).toHaveLength(9);
});

test('a new leader sends a run that ended an hour ago, and none that ended earlier', () => {
  const sentAt = (now: number): number => {
    const { spans, follow } = leader();
    follow({ ...OVER, now });
    return spans.length;
  };
  const ended = T0 + 30_000;
  expect([sentAt(ended + RESEND_MS), sentAt(ended + RESEND_MS + 1)]).toEqual([3, 0]);
});

test.each<[string, Given, number, number]>([
  ['of a run that never began', { states: {} }, NOW, NOW],
  ['of targets without signals', { states: { w1: 'missing' } }, T0 + 30_000, T0 + 30_000],
  [
    'from the first attempt to the last end',
    {
      states: { w1: 'done', w2: 'pending' },
      facts: {
        w1: { observation: succeeded(later(-5000), later(45_000)) },
        w2: { observation: NONE },
      },
    },
    T0 - 5000,
    T0 + 45_000,
  ],
  [
    'of times that cannot be read, which count as the recorded time',
    { states: { w1: 'done' }, facts: { w1: { observation: succeeded('first', 'last') } } },
    T0 + 30_000,
    T0 + 30_000,
  ],
])('the period %s', (_title, given, from, to) => {
  const { assessment } = turnOf(given);
  expect(spanOf(assessment.snapshot, assessment.snapshot.rollout, NOW)).toEqual({ from, to });
});

/** Tests which spans a rollout has, and that every leader creates the same spans. */
import { expect, test } from 'vitest';
import { failed, succeeded, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { type Metrics, noMetrics, type SpanReference } from '../../runtime/metrics.ts';
import type { Span } from '../../traces/otlp.ts';
import { assess } from '../assess/assess.ts';
import type { Wait } from '../model/decision.ts';
import type { Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import { measureSteps } from './measures.ts';
import { traceIdOf } from './spans.ts';
import { createTracer, RESEND_MS } from './tracer.ts';
import type { Turn } from './turn.ts';

type States = Readonly<Record<string, readonly [RecordedState, Observation]>>;

/** Returns the time `seconds` seconds after T0. */
function at(seconds: number): string {
  return later(1000 * seconds);
}

const NONE: Observation = { kind: 'none' };
const DONE: Observation = {
  kind: 'succeeded',
  attempt: at(0),
  since: at(20),
  report: { from: 'v1', spent: { Downloading: 4000, Restart: 8000 } },
};
const plan = { metadata: { name: 'plan', namespace: 'ns' } };

function turnOf(states: States, phase: Rollout['phase'] = 'running', now = T0 + 60_000): Turn {
  const targets = Object.entries(states).map(([name, [state]]) =>
    buildTarget(name, state, { since: at(30) }),
  );
  const rollout = {
    ...buildRollout([buildStage('worker', targets, { version: 'v2' })]),
    phase,
  };
  const facts = Object.fromEntries(
    Object.entries(states).map(([name, [, observation]]) => [name, { observation }]),
  );
  return { plan, assessment: assess(buildSnapshot(rollout, facts), buildPolicy(), now) };
}

/** Returns the tracer of a leader, and the spans that the tracer has exported. */
function leader(room = 1000) {
  const spans: Span[] = [];
  const state = { room };
  const exporter = {
    room: () => state.room,
    add: (more: readonly Span[]) => void spans.push(...more),
  };
  const tracer = createTracer(tableDialect, exporter);
  const follow = (turn: Turn, waits: readonly Wait[] = []): number | undefined =>
    tracer.follow(turn, turn.assessment.snapshot.rollout, waits);
  return { spans, state, tracer, follow };
}

function shown(spans: readonly Span[]): string[] {
  return spans.map(({ name, from, to, status }) => {
    const how = status === undefined ? '' : ` ${status.isGood ? 'ok' : 'error'}`;
    const message = status?.message === undefined ? '' : `: ${status.message}`;
    return `${name} ${(from - T0) / 1000}-${(to - T0) / 1000}${how}${message}`;
  });
}

test.each<[string, States, Rollout['phase'], string[]]>([
  [
    'a node that is done, with its steps one after the other',
    { w1: ['done', DONE], w2: ['pending', NONE] },
    'running',
    ['upgrade node 0-20 ok', 'Downloading 0-4', 'Restart 4-12'],
  ],
  ['a node at work has no span yet', { w1: ['intended', working('Restart')] }, 'running', []],
  [
    'a node that never began has none',
    { w1: ['done', NONE], w2: ['missing', NONE] },
    'running',
    [],
  ],
  [
    'a node that failed says why',
    { w1: ['failed', failed('404')] },
    'running',
    ['upgrade node 0-0 error: 404'],
  ],
  [
    'an attempt that a leader ended, because the node did not answer',
    { w1: ['failed', working('Restart')] },
    'running',
    ['upgrade node 0-30 error'],
  ],
  [
    'the end of the run adds the span of the whole',
    { w1: ['done', DONE], w2: ['failed', failed('404')] },
    'failed',
    [
      'upgrade node 0-20 ok',
      'Downloading 0-4',
      'Restart 4-12',
      'upgrade node 0-0 error: 404',
      'rollout 0-30 error',
    ],
  ],
])('%s', (_name, states, phase, expected) => {
  const { spans, follow } = leader();
  expect(follow(turnOf(states, phase))).toBeUndefined();
  expect(shown(spans)).toEqual(expected);
});

test('the span of a node that is rolled back does not call that an upgrade', () => {
  const { plan: of, assessment } = turnOf({ w1: ['done', DONE] });
  const { snapshot } = assessment;
  const rollout = { ...snapshot.rollout, rollsBack: 'uid/id1' };
  const { spans, follow } = leader();
  follow({ plan: of, assessment: { ...assessment, snapshot: { ...snapshot, rollout } } });
  expect(shown(spans)[0]).toBe('roll back node 0-20 ok');
});

test('steps are children of their node, and nodes of the run', () => {
  const { spans, follow } = leader();
  const turn = turnOf({ w1: ['done', DONE] }, 'done');
  follow(turn);
  const [node, first, second, whole] = spans;
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(
    new Set([traceIdOf(turn.assessment.snapshot.rollout)]),
  );
  expect(node?.traceId).toMatch(/^[0-9a-f]{32}$/);
  for (const { spanId } of spans) expect(spanId).toMatch(/^[0-9a-f]{16}$/);
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(4);
  expect([first?.parentSpanId, second?.parentSpanId]).toEqual([node?.spanId, node?.spanId]);
  expect(node?.parentSpanId).toBe(whole?.spanId);
  expect(whole).not.toHaveProperty('parentSpanId');
});

test('one leader sends each span once, and the next one sends the same again', () => {
  const open = turnOf({ w1: ['done', DONE], w2: ['pending', NONE] });
  const over = turnOf({ w1: ['done', DONE], w2: ['done', succeeded()] }, 'done');
  const first = leader();
  for (const turn of [open, open, over, over]) first.follow(turn);
  const second = leader();
  second.follow(over);
  expect(first.spans.filter(({ name }) => name === 'upgrade node')).toHaveLength(2);
  expect(second.spans).toEqual(first.spans);
  first.tracer.begin();
  first.follow(over);
  expect(first.spans).toHaveLength(2 * second.spans.length);
});

test('another attempt has another span in the same trace', () => {
  const { spans, follow } = leader();
  follow(turnOf({ w1: ['failed', failed('404')] }));
  follow(turnOf({ w1: ['done', { ...DONE, attempt: at(40), since: at(50) }] }));
  const nodes = spans.filter(({ name }) => name === 'upgrade node');
  expect(new Set(nodes.map(({ spanId }) => spanId)).size).toBe(2);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
});

test('a new leader sends no run that ended long ago', () => {
  const { spans, follow } = leader();
  follow(turnOf({ w1: ['done', DONE] }, 'done', T0 + RESEND_MS + 31_000));
  expect(spans).toEqual([]);
});

test('without room in the queue nothing is lost: it is sent later', () => {
  const { spans, state, follow } = leader(0);
  const turn = turnOf({ w1: ['done', DONE] }, 'done');
  expect(follow(turn)).toBeGreaterThan(0);
  expect(spans).toEqual([]);
  state.room = 100;
  expect(follow(turn)).toBeUndefined();
  expect(spans).toHaveLength(4);
});

test('a wait is an event with its reason: of the node while it works, and of the run before that', () => {
  const { spans, follow } = leader();
  const wait = (since: string, target = 'w1'): Wait => ({
    target,
    gate: 'window-open',
    reason: because('WindowClosed', 'the window is closed'),
    ends: 'it opens at 22:00',
    since,
  });
  follow(turnOf({ w1: ['pending', NONE] }, 'running', T0), [wait(at(-60))]);
  follow(turnOf({ w1: ['intended', working('Restart')] }, 'running', T0 + 15_000), [wait(at(5))]);
  follow(turnOf({ w1: ['done', DONE] }, 'done'));
  const waits = spans.map(({ name, events = [] }) => [
    name,
    events.map(({ at, attributes }) => [(at - T0) / 1000, attributes['refit.seconds']]),
  ]);
  expect(waits).toContainEqual(['upgrade node', [[5, 10]]]);
  expect(waits).toContainEqual(['rollout', [[-60, 60]]]);
  expect(spans[0]?.events?.[0]).toMatchObject({
    name: 'wait',
    attributes: {
      'refit.reason': 'WindowClosed',
      'refit.message': 'the window is closed',
      'refit.until': 'it opens at 22:00',
      'refit.target': 'w1',
    },
  });
});

test('what a node writes bounds neither the number of spans nor their times', () => {
  const steps = Object.fromEntries(
    Array.from({ length: 100 }, (_, index) => [`${'x'.repeat(100)}${index}`, 1e300]),
  );
  const { spans, follow } = leader();
  follow(turnOf({ w1: ['done', { ...DONE, report: { spent: steps } }] }));
  expect(spans).toHaveLength(21);
  for (const { name, to } of spans) {
    expect(name.length).toBeLessThanOrEqual(64);
    expect(Number.isSafeInteger(to)).toBe(true);
  }
});

/** Returns the span to which the duration metric of each step refers, by step. */
function referencesOf(turn: Turn, isTraced: boolean) {
  const references: Record<string, SpanReference | undefined> = {};
  const { snapshot } = turn.assessment;
  const stepDone: Metrics['stepDone'] = (_dialect, step, _seconds, span) => {
    references[step] = span;
  };
  const stages = snapshot.rollout.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.map((target) => ({ ...target, state: 'intended' as const })),
  }));
  const before = { ...snapshot, rollout: { ...snapshot.rollout, stages } };
  measureSteps({ ...noMetrics, stepDone }, 'table', before, snapshot.rollout, isTraced);
  return references;
}

test('the measure of each step refers to its span', () => {
  const spent = Object.fromEntries(
    Array.from({ length: 22 }, (_, index) => [`Step${'x'.repeat(70)}\n${index}`, 1000]),
  );
  const turn = turnOf({
    w1: ['done', { ...DONE, report: { spent: { Restart: 8000, ...spent } } }],
  });
  const { spans, follow } = leader();
  follow(turn);
  const [, ...steps] = spans;
  const references = Object.values(referencesOf(turn, true));
  expect(references).toHaveLength(23);
  expect(references.slice(0, 20)).toEqual(
    steps.map(({ traceId, spanId }) => ({ traceId, spanId })),
  );
  expect(references.slice(20)).toEqual([undefined, undefined, undefined]);
});

test.each<[string, Observation, boolean]>([
  ['without traces', DONE, false],
  ['of an attempt without a time', { ...DONE, attempt: '' }, true],
])('steps %s refer to no span', (_name, observation, isTraced) => {
  expect(referencesOf(turnOf({ w1: ['done', observation] }), isTraced)).toEqual({
    Downloading: undefined,
    Restart: undefined,
  });
});

test('after an edit of the version, the spans have the version of the signal', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'done', { since: at(30) })], {
    version: 'v3',
  });
  const rollout: Rollout = { ...buildRollout([stage]), phase: 'done' };
  const snapshot = buildSnapshot(rollout, { w1: { observation: DONE, asked: 'v2' } });
  const { spans, follow } = leader();
  follow({ plan, assessment: assess(snapshot, buildPolicy(), T0 + 60_000) });
  const versions = spans.flatMap(({ attributes }) => attributes['refit.version'] ?? []);
  expect(versions).toEqual(['v2', 'v2']);
});

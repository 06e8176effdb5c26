/** Shows the progress of a plan, the estimate of its remaining time, and what a narrow terminal shows of them. */

import { expect, test } from 'vitest';
import { textsOf } from '../../../test/support/builders/dialects.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { ShownPlan, TargetJson } from './json-form.ts';
import { percentOf, remainingOf, rowOf, waitLines } from './sentences.ts';
import { renderPlan } from './text.ts';

const done = (name: string, ...spent: number[]): TargetJson => ({
  name,
  phase: 'done',
  since: later(0),
  spent: Object.fromEntries(spent.map((ms, index) => [`step${index}`, ms])),
});
const open = (name: string, phase: 'pending' | 'working' = 'pending'): TargetJson => ({
  name,
  phase,
  since: later(0),
});

function planOf(targets: readonly TargetJson[], more: Partial<ShownPlan> = {}): ShownPlan {
  const stage = {
    command: 0,
    role: 'worker',
    version: 'v1.36.3+k0s.2',
    maxInFlight: 2,
    active: true,
    targets,
  } as const;
  const times = { created: later(0), uid: 'u', id: 'id1' };
  return {
    dialect: 'autopilot',
    texts: textsOf('autopilot'),
    kind: 'Plan',
    name: 'autopilot',
    ...times,
    phase: 'running',
    stages: [stage],
    waits: [],
    situations: [],
    next: [],
    ...more,
  };
}

const TARGETS = [
  done('w1', 50_000, 10_000),
  done('w2', 120_000),
  done('w3', 30_000),
  open('w4', 'working'),
  open('w5'),
  open('w6'),
];

test('the estimate for the rest of a plan counts rounds by slots, each as long as a typical node', () => {
  expect(percentOf(planOf(TARGETS))).toBe(50);
  expect(remainingOf(planOf(TARGETS), T0)).toBe(2 * 60_000);
});

test.each<[string, ShownPlan]>([
  ['no node is done', planOf([open('w1')])],
  [
    'no agent said how long it took',
    planOf([{ name: 'w1', phase: 'done', since: later(0) }, open('w2')]),
  ],
  ['it will wait before its end', planOf(TARGETS, { stopsAhead: ['WaveSettles'] })],
  ['it is over', planOf(TARGETS, { phase: 'done' })],
  [
    'a gate holds it',
    planOf(TARGETS, {
      waits: [
        { gate: 'node-ready', reason: { code: 'NodeNotReady', message: 'm' }, since: later(0) },
      ],
    }),
  ],
  ['no leader carries it out', planOf(TARGETS, { leaderless: true })],
  [
    'an agent has left its signal unanswered for a minute',
    planOf([...TARGETS, { name: 'w7', phase: 'signalled', since: later(MINUTE) }]),
  ],
  [
    'a node in progress waits for longer than a whole node takes',
    planOf(TARGETS, {
      waits: [
        {
          target: 'w4',
          gate: 'node-ready',
          reason: { code: 'NodeNotReady', message: 'm' },
          since: later(0),
        },
      ],
    }),
  ],
])('nothing is estimated while %s', (_why, plan) => {
  expect(remainingOf(plan, T0 + 2 * MINUTE)).toBeUndefined();
});

test('a short wait of a node in progress does not take the estimate away', () => {
  const reason = { code: 'NodeNotReady', message: 'm' } as const;
  const waits = [{ target: 'w4', gate: 'node-ready', reason, since: later(0) }];
  expect(remainingOf(planOf(TARGETS, { waits }), T0 + 1000)).toBe(2 * 60_000);
});

const medium = (width: number) => ({ width, paint: (_style: unknown, text: string) => text });

test('the first line of a plan has its share of nodes that are done and the estimate of its rest', () => {
  expect(renderPlan(planOf(TARGETS), 'text', T0 + MINUTE, medium(200))[0]).toBe(
    'Plan autopilot (id1)  running 3/6 for 1 min, 50 %, about 2 min left  to v1.36.3+k0s.2',
  );
});

test('a later run of a plan counts from its own beginning', () => {
  const plan = planOf(TARGETS, { started: later(60 * MINUTE) });
  const [line] = renderPlan(plan, 'text', T0 + 62 * MINUTE, medium(200));
  expect(line).toContain('running 3/6 for 2 min, 50 %');
});

test('of a hash the title has the beginning, and an estimate is not rounded up to what it is far from', () => {
  const plan = { ...planOf([done('w1', 2000), open('w2')]), id: '0123456789abcdef'.repeat(3) };
  expect(renderPlan(plan, 'text', T0 + MINUTE, medium(200))[0]).toBe(
    'Plan autopilot (0123456789ab)  running 1/2 for 1 min, 50 %, less than 10 s left  to v1.36.3+k0s.2',
  );
});

test('a plan that a window holds says so beside its state', () => {
  const reason = { code: 'WindowClosed', message: 'nothing starts before 22:00' } as const;
  const waits = [{ gate: 'window-open', reason, ofStage: true as const, since: later(0) }];
  const plan = planOf([open('w1')], { waits });
  expect(renderPlan(plan, 'text', T0 + MINUTE, medium(200))[0]).toBe(
    'Plan autopilot (id1)  running 0/1 for 1 min, waits for its window  to v1.36.3+k0s.2',
  );
});

test('the same sentence about several nodes is one line', () => {
  const waits = ['w4', 'w5', 'w6'].map((target) => ({
    target,
    gate: 'node-ready',
    reason: { code: 'NodeNotReady', message: `node ${target} is not Ready` } as const,
    since: later(0),
  }));
  expect(waitLines(planOf([open('w4'), open('w5'), open('w6')], { waits }), T0 + MINUTE)).toEqual([
    'node w4 is not Ready (NodeNotReady, 1 min); the same holds for w5, w6',
  ]);
});

const LONG = `a-worker-with-a-very-long-name.${'x'.repeat(20)}`;

test('a narrow terminal: the state first, and nothing wider than it but a name', () => {
  const lines = renderPlan(
    planOf([done('w1', 60_000), open(LONG, 'working')]),
    'text',
    T0 + MINUTE,
    medium(40),
  );
  expect(lines).toEqual([
    'Plan autopilot (id1)  running 1/2',
    '  for 1 min, 50 %, about 1 min left',
    '  to v1.36.3+k0s.2',
    '  workers  1/2  ●◐',
    '  STATE    FOR    NODE',
    `  working  1 min`,
    `      ${LONG}`,
  ]);
});

test.each([60, 66, 80])('%d columns: a bar that does not fit is counts instead', (width) => {
  const names = Array.from({ length: 40 }, (_, index) => open(`w${index}`));
  const [stage] = planOf(names).stages;
  if (!stage) throw new Error('no stage');
  const stages = [stage, { ...stage, command: 1, role: 'controller' as const }];
  const lines = renderPlan({ ...planOf([]), stages }, 'text', T0 + MINUTE, medium(width));
  expect(lines.filter((line) => line.length > width)).toEqual([]);
});

test('a wide table in a narrow terminal has no empty lines', () => {
  const lines = renderPlan(planOf([open(LONG), open('w2')]), 'wide', T0 + MINUTE, medium(60));
  expect(lines.filter((line) => line.trim() === '')).toEqual([]);
});

test.each([
  ['an upgrade', {}, 'upgraded, verifying'],
  ['a roll-back', { goesBack: true }, 'rolled back, verifying'],
])('a node of %s that is verified is called by what was done to it', (_, more, state) => {
  const target: TargetJson = { name: 'w1', phase: 'verifying', since: later(0) };
  expect(rowOf(planOf([target], more), target, undefined, T0).state).toBe(state);
});

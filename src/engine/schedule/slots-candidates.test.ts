/** Tests which targets get the free slots, which targets wait for a gate, and which targets cannot start. */

import { expect, onTestFinished, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { growthOf } from '../../../test/support/growth.ts';
import { BEFORE_TARGET } from '../gates/registry.ts';
import { type Gate, PASS, wait } from '../gates/types.ts';
import { answered } from '../model/asked.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { Role } from '../model/rollout.ts';
import type { Pace } from '../model/snapshot.ts';
import { type Choice, chooseTargets } from './slots.ts';

const sick = { ready: false };
const gone = { exists: false };

test.each<[string, number, Record<string, Partial<TargetFacts>>, object]>([
  ['chosen in the order of the list', 2, {}, { chosen: ['w3', 'w1'] }],
  ['no more than there are', 9, {}, { chosen: ['w3', 'w1', 'w2'] }],
  ['nobody without a free slot, and nobody is judged either', 0, { w3: gone }, {}],
  [
    'the ones behind who waits',
    2,
    { w3: sick },
    { chosen: ['w1', 'w2'], waiting: ['w3 node-ready'] },
  ],
  [
    'the ones behind who cannot start',
    1,
    { w3: gone },
    { chosen: ['w1'], stopped: ['w3 target-exists'] },
  ],
  ['those behind the last slot are not judged', 1, { w2: gone }, { chosen: ['w3'] }],
  [
    'nobody where all wait',
    2,
    { w1: sick, w2: sick, w3: sick },
    { waiting: ['w3 node-ready', 'w1 node-ready', 'w2 node-ready'] },
  ],
])('the candidates for free slots are %s', (_name, slots, facts, wanted) => {
  const stage = buildStage('worker', ['w3', 'w1', 'w2'], { maxInFlight: 9 });
  const choice = chooseTargets(
    { snapshot: buildSnapshot(buildRollout([stage]), facts), policy: buildPolicy(), now: T0 },
    stage,
    stage.targets,
    slots,
  );
  const refused = (list: typeof choice.waiting): string[] =>
    list.map(({ target, gate }) => `${target.name} ${gate}`);
  expect({
    chosen: choice.chosen.map(({ name }) => name),
    waiting: refused(choice.waiting),
    stopped: refused(choice.stopped),
  }).toEqual({ chosen: [], waiting: [], stopped: [], ...wanted });
});

test('each chosen node counts against maxUnavailable for the next ones', () => {
  const stage = buildStage('worker', ['w1', 'w2', 'w3'], { maxInFlight: 9 });
  const fleet = ['w1', 'w2', 'w3', 'w4'].map((name) => buildNode(name));
  const snapshot = withParts(buildSnapshot(buildRollout([stage])), { cluster: { fleet } });
  const policy = buildPolicy({ name: 'careful', maxUnavailable: { percent: 50 } });
  const { chosen, waiting } = chooseTargets({ snapshot, policy, now: T0 }, stage, stage.targets, 9);
  expect(chosen.map(({ name }) => name)).toEqual(['w1', 'w2']);
  expect(waiting.map(({ reason }) => reason.message)).toEqual([
    '2 of 4 nodes are not Ready, unschedulable or at work (w1, w2); UpgradePolicy careful allows 2',
  ]);
});

test('a waiting controller blocks the ones behind it', () => {
  const stage = buildStage('controller', ['c1', 'c2'], { maxInFlight: 1 });
  const snapshot = buildSnapshot(buildRollout([stage]), { c1: sick });
  const { chosen, waiting } = chooseTargets(
    {
      snapshot: withParts(snapshot, { cluster: { controlPlane: answered([]) } }),
      policy: buildPolicy(),
      now: T0,
    },
    stage,
    stage.targets,
    1,
  );
  expect({ chosen, waiting: waiting.map(({ target }) => target.name) }).toEqual({
    chosen: [],
    waiting: ['c1'],
  });
});

/** Adds a gate at the end of the list until the test ends. */
function askLast(gate: Pick<Gate, 'evaluate'> & Partial<Gate>): void {
  const list = BEFORE_TARGET as Gate[];
  const added = { name: 'toy', ...gate };
  list.push(added);
  onTestFinished(() => void list.splice(list.indexOf(added), 1));
}

function choose(
  role: Role,
  names: readonly string[],
  slots: number,
  facts: Record<string, Partial<TargetFacts>> = {},
) {
  const stage = buildStage(role, names, { maxInFlight: slots });
  const snapshot = buildSnapshot(buildRollout([stage]), facts);
  return chooseTargets({ snapshot, policy: buildPolicy(), now: T0 }, stage, stage.targets, slots);
}

const namesOf = (list: Choice['waiting']): string[] => list.map(({ target }) => target.name);
const crowd = (count: number): string[] => Array.from({ length: count }, (_, index) => `w${index}`);

test('a controller that cannot start does not block the others', () => {
  const { chosen, stopped } = choose('controller', ['c1', 'c2'], 1, { c1: gone });
  expect([chosen.map(({ name }) => name), namesOf(stopped)]).toEqual([['c2'], ['c1']]);
});

test('each chosen target takes room that foreign work leaves', () => {
  const stage = buildStage('worker', ['w1', 'w2', 'w3'], { maxInFlight: 2 });
  const foreign = {
    name: 'w9',
    role: 'worker',
    attempt: later(0),
    since: later(0),
    leftMs: 60_000,
  } as const;
  const snapshot = withParts(buildSnapshot(buildRollout([stage])), {
    outside: { foreignWork: [foreign] },
  });
  const choice = chooseTargets(
    { snapshot, policy: buildPolicy(), now: T0 },
    stage,
    stage.targets,
    2,
  );
  expect(choice.chosen.map(({ name }) => name)).toEqual(['w1']);
  expect(namesOf(choice.waiting)).toEqual(['w2', 'w3']);
});

test('targets that wait without a probe hide no target behind them', () => {
  const names = crowd(60);
  const { chosen } = choose(
    'worker',
    [...names, 'last'],
    1,
    Object.fromEntries(names.map((name) => [name, sick])),
  );
  expect(chosen.map(({ name }) => name)).toEqual(['last']);
});

test('after fifty targets whose probe found them blocked, no further target is asked', () => {
  askLast({ probesEachTarget: true, evaluate: () => wait('DrainBlocked', 'blocked', 'it is not') });
  const { waiting } = choose('worker', crowd(60), 1);
  expect(waiting).toHaveLength(50);
});

test('an invalid plan starts nothing, even when the target that shows it waits for something else', () => {
  const why = 'w2 is wrong for this plan';
  askLast({
    mayRefusePlan: () => true,
    evaluate: ({ facts }) => (facts.version === 'old' ? { ...refusal(why), ofPlan: true } : PASS),
  });
  const choice = choose('worker', ['w1', 'w2'], 2, { w2: { version: 'old', ready: false } });
  const ofRollout = {
    gate: 'toy',
    ends: 'the nodes in progress have finished; then the plan ends',
    ofRollout: true,
  };
  expect(choice).toMatchObject({ chosen: [], stopped: [], refusal: { message: why } });
  expect(choice.waiting).toEqual([expect.objectContaining(ofRollout)]);
});

test('a stop of one target by a gate that may refuse the plan refuses no plan', () => {
  askLast({
    mayRefusePlan: () => true,
    evaluate: ({ target }) => (target.name === 'w2' ? refusal('w2 failed') : PASS),
  });
  const { chosen, refusal: ofPlan } = choose('worker', ['w1', 'w2'], 1);
  expect([chosen.map(({ name }) => name), ofPlan]).toEqual([['w1'], undefined]);
});

test('a plan is judged once for each version, not for each target', () => {
  const judged: string[] = [];
  askLast({
    mayRefusePlan: () => true,
    evaluate({ target }) {
      judged.push(target.name);
      return PASS;
    },
  });
  choose('worker', ['w1', 'w2', 'w3', 'w4'], 1, {
    w2: { version: 'b' },
    w3: { version: 'b' },
    w4: { version: 'c' },
  });
  // w1 is evaluated first as a candidate. Then one target of each version is evaluated for the plan.
  expect(judged).toEqual(['w1', 'w1', 'w2', 'w4']);
});

test('a version that is refused for one target is checked again for the next', () => {
  const judged: string[] = [];
  askLast({
    mayRefusePlan: () => true,
    evaluate({ target }) {
      judged.push(target.name);
      return target.name === 'w1' ? PASS : refusal('failed earlier');
    },
  });
  choose('worker', ['w1', 'w2', 'w3'], 1, { w1: { version: 'a' } });
  expect(judged).toEqual(['w1', 'w1', 'w2', 'w3']);
});

function refusal(message: string) {
  return { kind: 'stop', reason: because('Downgrade', message, { versions: ['v1'] }) } as const;
}

/** The window lasts from 07:00 to 09:00 UTC, so it closes one hour after the start of the test. */
const WINDOW = {
  days: [],
  startMinute: 7 * 60,
  lengthMs: 2 * HOUR,
  timeZone: 'UTC',
};

test.each<[string, Pace, Record<string, KnownFacts>, object]>([
  [
    'a node waits for its own last upgrade, and the others start',
    { kind: 'unknown' },
    { w3: { earlierMs: 2 * HOUR }, w1: { earlierMs: MINUTE } },
    { chosen: ['w1', 'w2'], waiting: ['w3'] },
  ],
  [
    'the nodes of this plan decide for all',
    { kind: 'measured', mostMs: 2 * HOUR, usualMs: HOUR, fastMs: HOUR },
    { w1: { earlierMs: MINUTE } },
    { chosen: [], waiting: ['w3'] },
  ],
])('before a window closes: %s', (_, pace, facts, wanted) => {
  const stage = buildStage('worker', ['w3', 'w1', 'w2'], { maxInFlight: 3 });
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), facts), { pace });
  const policy = buildPolicy({ windows: [WINDOW], targetDeadlineMs: 3 * HOUR });
  const choice = chooseTargets({ snapshot, policy, now: T0 }, stage, stage.targets, 3);
  expect({
    chosen: choice.chosen.map(({ name }) => name),
    waiting: namesOf(choice.waiting),
  }).toEqual(wanted);
});

test('many targets that take too long for the window cost no more for each of them than few', () => {
  const window = { days: [1], startMinute: 0, lengthMs: HOUR, timeZone: 'Europe/Berlin' };
  const monday = Date.parse('2026-01-04T23:30:00Z');
  const chooseAmong = (count: number): void => {
    const names = Array.from({ length: count }, (_, index) => `w${index}`);
    const stage = buildStage('worker', names, { maxInFlight: 9 });
    const facts = Object.fromEntries(
      names.map((name, index) => [name, { earlierMs: 2 * HOUR + index }]),
    );
    const snapshot = buildSnapshot(buildRollout([stage]), facts);
    const policy = buildPolicy({ windows: [window] });
    const context = { snapshot, policy, now: monday };
    const { waiting } = chooseTargets(context, stage, stage.targets, 1);
    expect(waiting).toHaveLength(count);
    expect(waiting[0]?.reason.code).toBe('WindowTooShort');
  };
  // The windows are computed once, whatever the number of targets is.
  expect(growthOf(chooseAmong, 20, 16, 8)).toBeLessThan(8);
});

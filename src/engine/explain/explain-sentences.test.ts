/** Tests whole waits of plans: the sentence, what ends the wait, since when it lasts, and until when. */
import { describe, expect, test } from 'vitest';
import { sent, working } from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import { because } from '../model/reasons.ts';
import type { Rollout, Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { explain, groupWaits } from './explain.ts';

interface Scene {
  readonly stages: readonly Stage[];
  readonly facts?: Readonly<Record<string, KnownFacts>>;
  readonly rollout?: Partial<Rollout>;
  readonly parts?: SnapshotChanges;
  readonly policy?: Partial<RolloutPolicy>;
}

function waitsOf({ stages, facts, rollout, parts, policy }: Scene) {
  const snapshot = withParts(buildSnapshot(buildRollout(stages, rollout), facts), parts);
  return explain(assess(snapshot, buildPolicy({ name: 'careful', ...policy }), T0 + 10 * MINUTE))
    .waits;
}

const workers = (...names: readonly string[]): Stage => buildStage('worker', names);

describe('a pause', () => {
  const done = buildStage('worker', [buildTarget('w0', 'intended', { since: later(0) })]);
  const stages = [done, buildStage('worker', ['w1'], { command: 1 })];
  const paused: Scene = {
    stages,
    policy: { paused: true },
    facts: { w0: { observation: sent(later(MINUTE)) } },
  };
  const pausesIn = (scene: Scene) =>
    waitsOf(scene).filter(({ reason }) => reason.code === 'Paused');

  test('is a wait of the plan also if only a later stage waits for its end', () => {
    expect(pausesIn(paused)).toMatchObject([
      { gate: 'not-paused', ofStage: true, since: later(MINUTE) },
    ]);
  });

  test.each<[string, Partial<Scene>]>([
    ['nothing waits', { stages: [done] }],
    ['the plan is not paused', { policy: {} }],
    ['the plan has ended', { rollout: { phase: 'failed' } }],
    [
      'its record cannot be read',
      { rollout: { unread: because('CannotDecide', 'a shard is missing') } },
    ],
    ['nothing new starts', { rollout: { problems: [because('InvalidPlan', 'no version')] } }],
  ])('is no wait if %s', (_title, more) => {
    expect(pausesIn({ ...paused, ...more })).toEqual([]);
  });

  test('is told once', () => {
    expect(pausesIn({ stages: [workers('w1', 'w2')], policy: { paused: true } })).toHaveLength(1);
  });
});

test('the waits of a new plan begin when the plan was created', () => {
  const stages = [buildStage('worker', [buildTarget('w1', 'pending', { since: later(MINUTE) })])];
  const source = { ...buildRollout([]).source, created: later(5000) };
  const waits = waitsOf({ stages, rollout: { phase: 'new', source }, policy: { paused: true } });
  expect(waits.length).toBeGreaterThan(0);
  expect(new Set(waits.map(({ since }) => since))).toEqual(new Set([later(5000)]));
});

describe('a plan in which nothing new starts says why', () => {
  const failed = buildStage('worker', [buildTarget('w1', 'failed'), buildTarget('w2', 'intended')]);
  const facts = { w2: { observation: working('Restart') } };
  const wait = (more: Partial<Scene>) => waitsOf({ stages: [failed], facts, ...more }).at(-1);
  const FINISHING = 'the nodes in progress have finished; then the plan ends';
  const LIFTS =
    'the failed node is tried again (run refit retry NODE), or failureBudget is 1 or more while the plan runs';
  const BUDGET = '1 node failed (w1), more than failureBudget 0 of UpgradePolicy careful allows';
  const SINCE = { since: later(0), ofStage: true };

  test('an abort', () => {
    const parts = { plan: { controls: { ...NO_CONTROLS, abort: 'ann' } } };
    expect(wait({ parts })).toMatchObject({
      gate: 'not-aborted',
      ends: FINISHING,
      reason: { code: 'Aborted' },
    });
    expect(wait({ parts })?.reason.message).toMatch(
      /; nothing new starts; the leader stops the work where it still can, and the other nodes in progress finish$/,
    );
  });

  test('an edit that made the plan invalid', () => {
    expect(wait({ rollout: { problems: [because('InvalidPlan', 'it has no version')] } })).toEqual({
      gate: 'plan-valid',
      reason: {
        code: 'InvalidPlan',
        message: 'the plan was changed while it ran: it has no version',
      },
      ends: 'the plan is corrected',
      ...SINCE,
    });
  });

  test('a failure budget that is used up', () => {
    expect(wait({})).toEqual({
      gate: 'failure-budget',
      reason: {
        code: 'FinishingInFlight',
        message: `nothing new starts: a target failed; ${BUDGET}`,
      },
      ends: `${FINISHING}, unless ${LIFTS}`,
      ...SINCE,
    });
    const rollout = { reason: because('TargetFailed', 'w1: no space') };
    expect(wait({ rollout })?.reason.message).toBe(`nothing new starts: w1: no space; ${BUDGET}`);
    expect(wait({ policy: { pausesOnFailure: true } })).toEqual({
      gate: 'failure-budget',
      reason: {
        code: 'PausedByFailures',
        message: `nothing new starts: a target failed; ${BUDGET}`,
      },
      ends: LIFTS,
      ...SINCE,
    });
  });

  test('a record that cannot be read', () => {
    const unread = because('CannotDecide', 'a shard is missing');
    expect(wait({ rollout: { unread } })).toEqual({
      gate: 'record',
      reason: unread,
      ends: 'the record of the plan can be read again',
      ...SINCE,
    });
  });
});

test.each<[string, SnapshotChanges, string]>([
  [
    'with refit retry',
    {},
    `the pause is over, at ${later(5 * MINUTE)}; to try it sooner, run refit retry w1`,
  ],
  [
    'without it',
    { abilities: { retriedBy: 'run the program again' } },
    `the pause is over, at ${later(5 * MINUTE)}`,
  ],
])('a failed target that is tried again says how to try it sooner: %s', (_title, more, ends) => {
  const stages = [buildStage('worker', [buildTarget('w1', 'failed')])];
  const parts = { abilities: { canRetry: true, ...more.abilities } };
  const policy = { retry: { attempts: 2, backoffMs: 5 * MINUTE } };
  expect(waitsOf({ stages, parts, policy })).toEqual([
    {
      target: 'w1',
      gate: 'retry',
      reason: { code: 'RetryWaits', message: `w1 failed: attempt 2 of 2 at ${later(5 * MINUTE)}` },
      since: later(0),
      ends,
      until: later(5 * MINUTE),
    },
  ]);
});

test('targets of later stages wait for the stages before them, and several commands are named', () => {
  const laterIn = (stages: readonly Stage[]) =>
    waitsOf({ stages, facts: { c1: { observation: sent() } } }).filter(
      ({ gate }) => gate === 'stages',
    );
  const first = buildStage('controller', [buildTarget('c1', 'intended')]);
  expect(laterIn([first, workers('w1', 'w2')])).toEqual([
    {
      gate: 'stages',
      reason: { code: 'EarlierStage', message: '2 workers wait until the controllers are done' },
      ends: 'the earlier stage is done',
      since: later(0),
    },
  ]);
  const second = buildStage('worker', ['w1'], { command: 1 });
  expect(laterIn([first, second])[0]?.reason.message).toBe(
    '1 worker of spec.commands[1] waits until the controllers of spec.commands[0] are done',
  );
  expect(laterIn([first, buildStage('worker', [buildTarget('w1', 'done')])])).toEqual([]);
});

describe('queued targets', () => {
  const busy = (more: Partial<Stage> = {}) => [
    buildStage('worker', [buildTarget('w1', 'intended'), 'w2', 'w3'], more),
  ];
  const slotWaitOf = (scene: Scene) =>
    waitsOf(scene).find(({ gate }) => gate === 'slots' || gate === 'failure-budget');

  test('wait for a free slot', () => {
    const wait = slotWaitOf({ stages: busy(), facts: { w1: { observation: sent() } } });
    expect(wait).toMatchObject({
      reason: { code: 'NoFreeSlot', message: '2 workers queued (1 at a time)' },
      ends: 'a node in progress is done',
      ofStage: true,
    });
  });

  test('name the failed nodes that keep a slot', () => {
    const stages = [
      buildStage('worker', [buildTarget('w1', 'failed'), 'w2'], { failedHoldSlots: true }),
    ];
    expect(slotWaitOf({ stages })).toMatchObject({
      reason: {
        code: 'NoFreeSlot',
        message: '1 worker queued (1 at a time); these failed nodes keep a slot: w1',
      },
      ends: 'a failed node is tried again: run refit retry NODE',
    });
  });

  test('name the failed nodes that are still at work', () => {
    const stages = [buildStage('worker', [buildTarget('w1', 'failed'), 'w2'])];
    const facts = { w1: { observation: working('Restart') } };
    expect(slotWaitOf({ stages, facts, policy: { maxFailures: 1 } })).toMatchObject({
      reason: {
        message:
          '1 worker queued (1 at a time); these failed nodes are still at work and keep a slot: w1',
      },
      ends: 'the work on w1 has ended',
    });
  });
});

test('targets with the same wait share it, and its details are kept', () => {
  const reason = because('Paused', 'x');
  const stage = workers('w1', 'w2', 'w3');
  const [w1 = buildTarget('w1'), w2 = w1, w3 = w1] = stage.targets;
  const wait = { gate: 'g', reason, ends: 'y', since: later(0) };
  const more = { until: later(MINUTE), unapproved: 2, uncordon: ['n9'], after: ['n8'] };
  expect(groupWaits(stage, [{ ...wait, target: w1, ...more }])).toEqual([
    { ...wait, target: 'w1', ...more },
  ]);
  expect(
    groupWaits(
      stage,
      [w1, w2].map((target) => ({ ...wait, target })),
    ),
  ).toEqual([{ ...wait, target: 'w1', ofStage: true }]);
  const other = { ...wait, reason: because('Paused', 'z') };
  expect(
    groupWaits(stage, [
      { ...wait, target: w1 },
      { ...other, target: w3 },
    ]),
  ).toEqual([
    { ...wait, target: 'w1' },
    { ...other, target: 'w3' },
  ]);
  const controllers = buildStage('controller', ['c1']);
  expect(groupWaits(controllers, [{ ...wait, target: w1 }])).toMatchObject([{ ofStage: true }]);
  expect(groupWaits(stage, [{ ...wait, target: w1, ofRollout: true }])).toMatchObject([
    { ofStage: true },
  ]);
});

test('a wait of a target in progress begins with the report of its node, unless that time is impossible', () => {
  const stages = [buildStage('worker', [buildTarget('w1', 'intended', { since: later(0) })])];
  const sinceOf = (facts: KnownFacts) => waitsOf({ stages, facts: { w1: facts } })[0]?.since;
  expect(sinceOf({ observation: working('Restart', later(0), later(MINUTE)) })).toBe(later(MINUTE));
  const watched = { watchedMs: 2 * MINUTE };
  const future = working('Restart', later(0), later(9 * MINUTE));
  expect(sinceOf({ observation: future, ...watched })).toBe(later(8 * MINUTE));
  expect(sinceOf({ observation: working('Restart', later(0), 'soon'), ...watched })).toBe(
    later(8 * MINUTE),
  );
  expect(sinceOf({ refusal: { reason: because('TargetRefused', 'no'), recheckMs: 1 } })).toBe(
    later(0),
  );
});

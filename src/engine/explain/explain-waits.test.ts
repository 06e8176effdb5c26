/**
 * Tests each wait completely, as commands show it: the gate, the reason, what ends it, since when it lasts, and whether
 * it affects the whole stage.
 */

import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { NONE, sent, succeeded, working } from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { agentOf } from '../../signal/agent-presence.ts';
import { assess } from '../assess/assess.ts';
import { type Needs, needsOf } from '../assess/needs.ts';
import { answered, UNASKED, unanswered } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import {
  type Explanation,
  explain,
  explainToPeople,
  type FullExplanation,
  groupWaits,
} from './explain.ts';

const FINISHING = 'the nodes in progress have finished; then the plan ends';
const SINCE = later(0);
const moving = buildTarget('w2', 'intended');
const STAGE = buildStage('worker', ['w1', moving]);
const atWork = { w2: { observation: working('Restart') } };

type Options = {
  readonly facts?: Record<string, Partial<TargetFacts>>;
  readonly more?: SnapshotChanges;
  readonly policy?: Parameters<typeof buildPolicy>[0];
  readonly how?: typeof explain;
  readonly now?: number;
};

function explained(
  rollout: Rollout,
  { facts = atWork, more, policy, how = explain, now = 0 }: Options = {},
): Partial<FullExplanation> & Explanation & { readonly needs: Needs } {
  const snapshot = withParts(buildSnapshot(rollout, facts), more);
  const assessment = assess(snapshot, buildPolicy(policy), T0 + now);
  return { ...how(assessment), needs: needsOf(assessment) };
}

const last = (rollout: Rollout, options?: Options): unknown =>
  explained(rollout, options).waits.at(-1);

test.each<[string, () => unknown, object]>([
  [
    'an abort',
    () =>
      last(buildRollout([STAGE]), {
        more: { plan: { controls: { ...NO_CONTROLS, abort: 'wrong' } } },
      }),
    {
      gate: 'not-aborted',
      reason: because(
        'Aborted',
        'the plan was aborted: wrong; nothing new starts; the leader stops the work where it still can, and the other nodes in progress finish',
      ),
      ends: FINISHING,
    },
  ],
  [
    'a plan that became wrong',
    () =>
      last(
        buildRollout([STAGE], {
          problems: [because('InvalidPlan', 'no id'), because('InvalidPlan', 'x')],
        }),
      ),
    {
      gate: 'plan-valid',
      reason: because('InvalidPlan', 'the plan was changed while it ran: no id'),
      ends: 'the plan is corrected',
    },
  ],
  [
    'a failure whose reason is not recorded',
    () => last(buildRollout([buildStage('worker', [buildTarget('w0', 'failed'), 'w1', moving])])),
    {
      gate: 'failure-budget',
      reason: because(
        'FinishingInFlight',
        'nothing new starts: a target failed; 1 node failed (w0), more than failureBudget 0 (the default, since no UpgradePolicy applies) allows',
      ),
      ends: `${FINISHING}, unless the failed node is tried again (run refit retry NODE), or failureBudget is 1 or more while the plan runs`,
    },
  ],
  [
    'a record that cannot be read',
    () => last(buildRollout([STAGE], { unread: because('RecordUnread', 'part 2 is gone') })),
    {
      gate: 'record',
      reason: because('RecordUnread', 'part 2 is gone'),
      ends: 'the record of the plan can be read again',
    },
  ],
])('the wait of a whole stage is told: %s', (_name, wait, expected) => {
  expect(wait()).toEqual({ ...expected, since: SINCE, ofStage: true });
});

test('a later stage waits for the stage before it', () => {
  const stages = [
    buildStage('controller', [buildTarget('c1', 'intended')]),
    buildStage('worker', ['w1']),
  ];
  expect(last(buildRollout(stages), { facts: { c1: { observation: sent() } } })).toEqual({
    gate: 'stages',
    reason: because('EarlierStage', '1 worker waits until the controllers are done'),
    ends: 'the earlier stage is done',
    since: SINCE,
  });
});

test('a new plan waits for its preconditions, and for nothing else', () => {
  const rollout = buildRollout([STAGE], { phase: 'new' });
  const common = { gate: 'preconditions', since: SINCE, ofStage: true };
  const unasked = explained(rollout, { more: { plan: { preconditions: UNASKED } } });
  const checking = because('PreconditionsUnknown', 'checking the preconditions of the plan');
  expect(unasked.waits).toEqual([{ ...common, reason: checking, ends: 'the API server answers' }]);
  expect(unasked.needs.probes).toEqual([{ kind: 'preconditions' }]);
  const reason = because('CannotDecide', 'no answer');
  const preconditions = unanswered({ reason, recheckMs: 7 });
  const asked = explained(rollout, { more: { plan: { preconditions } } });
  expect(asked.waits).toEqual([{ ...common, reason, ends: 'the probe gets an answer' }]);
  expect(asked.needs.recheckAfterMs).toBe(7);
});

test.each<[string, Rollout, SnapshotChanges]>([
  ['runs already', buildRollout([STAGE]), { plan: { preconditions: UNASKED } }],
  [
    'has its answer',
    buildRollout([STAGE], { phase: 'new' }),
    { plan: { preconditions: answered([]) } },
  ],
])('a plan that %s does not wait for its preconditions', (_name, rollout, more) => {
  expect(explained(rollout, { more }).waits.map(({ gate }) => gate)).not.toContain('preconditions');
});

test('a rest says until when it lasts, also where no deadline counts', () => {
  const never = Number.POSITIVE_INFINITY;
  const stage = buildStage('worker', [buildTarget('w1', 'intended')], { restMs: HOUR });
  const policy = {
    targetDeadlineMs: never,
    stepDeadlines: { ...buildPolicy().stepDeadlines, ready: never },
  };
  const { waits } = explained(buildRollout([stage]), {
    facts: { w1: { observation: succeeded() } },
    policy,
  });
  expect(waits[0]).toMatchObject({ gate: 'rest-over', until: later(HOUR) });
});

test('a stage that is over waits for nothing more', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'done')]);
  expect(explained(buildRollout([stage])).waits).toEqual([]);
  expect(explained(buildRollout([stage]), { how: explainToPeople }).waits).toEqual([]);
});

const gated = (name: string, gate = 'toy', more: object = {}) => ({
  target: buildTarget(name),
  gate,
  reason: because('Paused', 'why'),
  ends: 'it ends',
  since: SINCE,
  ...more,
});

test.each<[string, 'worker' | 'controller', ReturnType<typeof gated>[], object[]]>([
  ['a worker alone', 'worker', [gated('w1')], [{ target: 'w1' }]],
  [
    'two for the same reason',
    'worker',
    [gated('w1'), gated('w2')],
    [{ target: 'w1', ofStage: true }],
  ],
  [
    'two by two gates',
    'worker',
    [gated('w1'), gated('w2', 'other')],
    [{ target: 'w1' }, { target: 'w2', gate: 'other' }],
  ],
  [
    'a gate of the rollout',
    'worker',
    [gated('w1', 'toy', { ofRollout: true })],
    [{ target: 'w1', ofStage: true }],
  ],
  [
    'a controller, which holds the next ones',
    'controller',
    [gated('c1')],
    [{ target: 'c1', ofStage: true }],
  ],
  [
    'one that ends by itself',
    'worker',
    [gated('w1', 'toy', { until: later(5) })],
    [{ target: 'w1', until: later(5) }],
  ],
])('waits that are alike are one: %s', (_name, role, waiting, expected) => {
  const waits = groupWaits(buildStage(role, []), waiting);
  const common = { gate: 'toy', reason: because('Paused', 'why'), ends: 'it ends', since: SINCE };
  expect(waits).toStrictEqual(expected.map((each) => ({ ...common, ...each })));
});

const DONE = buildTarget('w3', 'done');
const sick = { ready: false, readySince: later(MINUTE) };

test('people also read why targets wait that were let past: since when, and with their probes', () => {
  const node = { name: 'w0', unschedulable: false, cordonOwner: undefined, taintOwner: undefined };
  const stage = buildStage('worker', ['w0', DONE, 'w1', moving, 'w4', 'w5']);
  const facts = {
    ...atWork,
    w0: { node, drainPreview: UNASKED },
    w1: sick,
    w3: { ready: false },
    w4: { ready: false },
  };
  const { waits, probes } = explained(buildRollout([stage]), {
    facts,
    how: explainToPeople,
    now: MINUTE,
  });
  expect(waits.slice(2)).toEqual([
    expect.objectContaining({ target: 'w0', gate: 'drain-possible', since: SINCE }),
    expect.objectContaining({ target: 'w1', gate: 'node-ready', since: later(MINUTE) }),
  ]);
  expect(probes).toEqual([{ kind: 'drain-preview', node: 'w0' }]);
});

test('people do not read twice what a target with a free slot waits for', () => {
  const stage = buildStage('worker', ['w0', 'w1', moving], { maxInFlight: 3 });
  const facts = { ...atWork, w0: sick, w1: sick };
  const { waits } = explained(buildRollout([stage]), { facts, how: explainToPeople });
  expect(waits.map(({ target }) => target)).toEqual(['w2', 'w0', 'w1']);
});

test.each<[string, Partial<Rollout>, Options]>([
  ['over', { phase: 'done' }, {}],
  ['unreadable', { unread: because('CannotDecide', 'x') }, {}],
  ['aborted', {}, { more: { plan: { controls: { ...NO_CONTROLS, abort: 'wrong' } } } }],
])('in a rollout that is %s nobody is let past', (_name, rollout, options) => {
  const stage = buildStage('worker', ['w1', moving]);
  const facts = { w1: sick, w2: { observation: NONE } };
  const { waits } = explained(buildRollout([stage], rollout), {
    facts,
    ...options,
    how: explainToPeople,
  });
  expect(waits.map(({ gate }) => gate)).not.toContain('node-ready');
});

test.each<[string, string, string]>([
  ['began before its turn: since its turn', later(-3 * HOUR), later(5 * MINUTE)],
  ['began after its turn: since then', later(7 * MINUTE), later(7 * MINUTE)],
  ['has no readable beginning: since its turn', 'yesterday', later(5 * MINUTE)],
])(
  'a wait is never older than the turn of its target: the cause %s',
  (_name, readySince, since) => {
    const stages = [
      buildStage('controller', [buildTarget('c1', 'done', { since: later(5 * MINUTE) })]),
      buildStage('worker', ['w1']),
    ];
    const facts = { w1: { ready: false, readySince } };
    const waits = explained(buildRollout(stages), { facts, now: HOUR }).waits;
    expect(waits.map(({ gate, since }) => [gate, since])).toEqual([['node-ready', since]]);
  },
);

test('a failure budget that is used up is told as that, although nodes are in progress', () => {
  const failed = ['f1', 'f2'].map((name) => buildTarget(name, 'failed'));
  const stage = buildStage('worker', ['w1', moving, ...failed], { maxInFlight: 4 });
  const rollout = buildRollout([{ ...stage, failedHoldSlots: true }]);
  const budget = { facts: atWork, policy: buildPolicy({ maxFailures: 1, name: 'nightly' }) };
  expect(last(rollout, budget)).toMatchObject({
    gate: 'failure-budget',
    reason: because(
      'FinishingInFlight',
      '1 worker queued; 2 failed, more than failureBudget 1 of UpgradePolicy nightly allows: f1, f2',
    ),
    ends: 'a failed node is tried again: run refit retry NODE; or failureBudget of the UpgradePolicy is 2 or more',
  });
});

test('failed nodes that keep all slots name the way of their dialect if refit retry cannot retry them', () => {
  const stage = buildStage('worker', ['w1', buildTarget('w2', 'failed')], { maxInFlight: 1 });
  const more = { abilities: { retriedBy: 'run the program again' } };
  const rollout = buildRollout([{ ...stage, failedHoldSlots: true }]);
  expect(last(rollout, { facts: {}, more })).toMatchObject({
    ends: 'a failed node is tried again: run the program again',
  });
});

test('failed nodes that keep all slots are named, with the command that ends it', () => {
  const stage = buildStage('worker', ['w1', buildTarget('w2', 'failed')], { maxInFlight: 1 });
  expect(last(buildRollout([{ ...stage, failedHoldSlots: true }]), { facts: {} })).toMatchObject({
    reason: because(
      'NoFreeSlot',
      '1 worker queued (1 at a time); these failed nodes keep a slot: w2',
    ),
    ends: 'a failed node is tried again: run refit retry NODE',
  });
});

test.each<[string, Partial<TargetFacts>, string]>([
  [
    'the answer of an agent',
    { agent: agentOf(buildNode('w1')) },
    'the node answers its signal; if it does not answer, check that its agent runs',
  ],
  ['the begin of the work, in a dialect without agents', {}, 'the work on the node begins'],
])('a signalled node waits for %s', (_name, facts, ends) => {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')]);
  const { waits } = explained(buildRollout([stage]), {
    facts: { w1: { observation: sent(), ...facts } },
  });
  expect(waits).toMatchObject([{ gate: 'signalled', ends }]);
});

test.each<[string, Rollout, Options, string]>([
  [
    'a node in progress',
    buildRollout([buildStage('worker', ['w1', moving], { maxInFlight: 1 })]),
    {},
    'a node in progress is done',
  ],
  [
    'a node that is about to start, if none is in progress',
    buildRollout([buildStage('worker', ['w1', 'w2'], { maxInFlight: 1 })]),
    { facts: {} },
    'w1, which starts first, is done',
  ],
  [
    'one of the nodes that are about to start',
    buildRollout([buildStage('worker', ['w1', 'w2', 'w3'], { maxInFlight: 2 })]),
    { facts: {} },
    'one of the nodes that start first is done: w1, w2',
  ],
  [
    'the work of a failed node, if nothing else keeps the slot',
    buildRollout([
      buildStage('worker', [buildTarget('w1', 'failed'), 'w2', 'w3'], { maxInFlight: 1 }),
    ]),
    { facts: { w1: { observation: working('Restart') } }, policy: { maxFailures: 1 } },
    'the work on w1 has ended',
  ],
])('a wait for a slot ends with %s', (_name, rollout, options, ends) => {
  expect(last(rollout, options)).toMatchObject({ gate: 'slots', ends });
});

const FIRST_WAVE = { selector: { matchLabels: { tier: 'canary' } } };
const canary = { labels: { tier: 'canary' } };
const IN_WAVES = buildRollout([buildStage('worker', [moving, 'w3', 'w4'], { maxInFlight: 1 })]);
const inWaves = { w2: { ...atWork.w2, ...canary } };

test.each<[string, Options, string]>([
  [
    'nothing else, if a queued node belongs to the wave at work',
    {
      facts: { ...inWaves, w4: canary },
      policy: { waves: [FIRST_WAVE, { needsApproval: true }] },
    },
    'a node in progress is done',
  ],
  [
    'an approval, if all queued nodes belong to a wave that needs one',
    { facts: inWaves, policy: { waves: [FIRST_WAVE, { needsApproval: true }] } },
    'a node in progress is done, and somebody approves the wave with `refit approve`',
  ],
  [
    'a settle time, if the wave at work has one',
    { facts: inWaves, policy: { waves: [{ ...FIRST_WAVE, settleMs: HOUR }] } },
    'a node in progress is done, and the waves before wave 2 have settled',
  ],
])('besides a free slot, queued nodes wait for %s', (_name, options, ends) => {
  expect(last(IN_WAVES, options)).toMatchObject({ gate: 'slots', ends });
});

test('a turn with no free slot does not divide the nodes into waves, unless somebody reads what ends the wait', () => {
  const snapshot = buildSnapshot(IN_WAVES, inWaves);
  let lookups = 0;
  const targets = {
    ...snapshot.targets,
    labelsOf: (key: string) => {
      lookups++;
      return snapshot.targets.labelsOf(key);
    },
  };
  const policy = buildPolicy({ waves: [{ ...FIRST_WAVE, settleMs: HOUR }] });
  const wait = explain(assess({ ...snapshot, targets }, policy, T0)).waits.at(-1);
  expect([wait?.gate, lookups]).toEqual(['slots', 0]);
  expect(wait?.ends).toContain('have settled');
  expect(lookups).toBeGreaterThan(0);
});

test.each<[string, Record<string, Partial<TargetFacts>>, string]>([
  [
    'a node in progress',
    { w2: { observation: working('Cordoning', SINCE, later(2 * HOUR)), watchedMs: MINUTE } },
    'w2',
  ],
  [
    'one that gives no time',
    { w2: { observation: working('Cordoning', SINCE, 'soon'), watchedMs: MINUTE } },
    'w2',
  ],
  ['a node that is not Ready', { w1: { ready: false, readySince: later(2 * HOUR) } }, 'w1'],
  [
    'the attempt of another node',
    { w1: { ready: false }, w2: { observation: working('Restart', later(2 * HOUR)) } },
    'w1',
  ],
])(
  'a wait began before now, although a clock that is ahead says when: %s',
  (_name, facts, name) => {
    const stage = buildStage('worker', ['w1', moving], { maxInFlight: 2 });
    const { waits } = explained(buildRollout([stage]), { facts, now: MINUTE });
    expect(waits.find(({ target }) => target === name)?.since).toBe(SINCE);
  },
);

/** Tests which limit of a policy stops a plan, and the sentences about this limit. */
import { expect, test } from 'vitest';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE } from '../../../test/support/clock/times.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout, Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import {
  budgetOf,
  describeUsedUpBudget,
  endByBudget,
  isOverBudget,
  isStopping,
  tooManyBlocked,
  withBudgetOf,
} from './budget.ts';

type States = Readonly<Record<string, RecordedState>>;

interface Scene {
  /** The states of the targets of each stage of workers, by name. Each target ended a minute after the target before it. */
  readonly states: readonly States[];
  readonly stage?: Partial<Stage>;
  readonly rollout?: Partial<Rollout>;
  readonly facts?: Readonly<Record<string, KnownFacts>>;
  readonly parts?: SnapshotChanges;
}

function snapshotOf({ states, stage = {}, rollout = {}, facts, parts }: Scene) {
  const stages = states.map((each, command) =>
    buildStage(
      'worker',
      Object.entries(each).map(([name, state], index) =>
        buildTarget(name, state, { since: later((index + 1) * MINUTE) }),
      ),
      { command, ...stage },
    ),
  );
  return withParts(buildSnapshot(buildRollout(stages, rollout), facts), parts);
}

const policyOf = (more: Partial<RolloutPolicy> = {}): RolloutPolicy =>
  buildPolicy({ name: 'nightly', maxFailures: 9, ...more });
const CANARY = { labels: { canary: 'true' } };
const WAVES = [{ selector: { matchLabels: { canary: 'true' } }, maxFailures: { nodes: 0 } }];
const TOO_LONG = { reason: because('DrainTooLong', 'w1 was not drained within 1 h') };
const RETRY = { attempts: 2, backoffMs: MINUTE };
const CAN_RETRY = { abilities: { canRetry: true } };
const FAILED: States = { w1: 'failed' };

test.each<[string, Scene, Partial<RolloutPolicy>, string, string]>([
  [
    'one skipped node',
    { states: [{ w1: 'skipped', w2: 'pending' }] },
    { maxBlocked: 0 },
    '1 node could not be drained or was held (w1), more than maxBlockedNodes 0 of UpgradePolicy nightly allows',
    'the skipped nodes are tried again (run refit retry --skipped), or maxBlockedNodes is 1 or more while the plan runs',
  ],
  [
    'several skipped nodes',
    { states: [{ w1: 'skipped', w2: 'skipped', w3: 'pending' }] },
    { maxBlocked: 1 },
    '2 nodes could not be drained or were held (w1, w2), more than maxBlockedNodes 1 of UpgradePolicy nightly allows',
    'the skipped nodes are tried again (run refit retry --skipped), or maxBlockedNodes is 2 or more while the plan runs',
  ],
  [
    'a drain that took too long',
    { states: [{ w1: 'failed', w2: 'pending' }], rollout: TOO_LONG },
    {},
    'drain.onDeadline: Stop of UpgradePolicy nightly ends the plan at a drain that takes too long',
    'the failed node is tried again (run refit retry NODE)',
  ],
  [
    'the failures of the second wave',
    {
      states: [{ w1: 'failed', w2: 'done', w3: 'done' }],
      facts: { w1: CANARY, w2: { labels: { early: 'true' } } },
    },
    { waves: [{ selector: { matchLabels: { early: 'true' } } }, ...WAVES] },
    '1 node of wave 2 failed (w1), more than its failureBudget 0 in UpgradePolicy nightly allows',
    'the failed node is tried again (run refit retry NODE), or the failureBudget of the wave is 1 or more while the plan runs',
  ],
  [
    'failures one after the other',
    { states: [{ w1: 'done', w2: 'failed', w3: 'failed' }] },
    { maxConsecutiveFailures: 1 },
    '2 nodes failed one after the other (w2, w3), more than maxConsecutiveFailures 1 of UpgradePolicy nightly allows',
    'the failed node is tried again (run refit retry NODE), or maxConsecutiveFailures is 2 or more while the plan runs',
  ],
  [
    'a share of the nodes',
    { states: [{ w1: 'failed', w2: 'failed', w3: 'missing' }] },
    { maxFailures: 1, maxFailuresPercent: 50 },
    '3 nodes failed (w1, w2, w3), more than failureBudget 50% (1 node) of UpgradePolicy nightly allows',
    'the failed node is tried again (run refit retry NODE), or failureBudget is 3 or more while the plan runs',
  ],
])('%s: the limit and what lifts it', (_title, scene, policy, message, lifts) => {
  expect(describeUsedUpBudget(snapshotOf(scene), policyOf(policy))).toEqual({ message, lifts });
});

test('the budget without a policy is the default', () => {
  expect(budgetOf(buildPolicy())).toBe(
    'failureBudget 0 (the default, since no UpgradePolicy applies)',
  );
});

test.each<[string, boolean, Scene, Partial<RolloutPolicy>]>([
  [
    'skipped nodes within the limit',
    false,
    { states: [{ w1: 'skipped', w2: 'pending' }] },
    { maxBlocked: 1 },
  ],
  ['skipped nodes without a limit', false, { states: [{ w1: 'skipped', w2: 'pending' }] }, {}],
  [
    'skipped nodes after all others',
    false,
    { states: [{ w1: 'skipped', w2: 'done' }] },
    { maxBlocked: 0 },
  ],
  [
    'a failure outside of the wave with a budget',
    false,
    { states: [{ w1: 'done', w2: 'failed' }], facts: { w1: CANARY } },
    { waves: WAVES, maxFailures: 1 },
  ],
  [
    'a failure in a wave without a budget of its own',
    true,
    { states: [{ w1: 'failed', w2: 'done' }], facts: { w1: CANARY } },
    {
      waves: [{ selector: { matchLabels: { canary: 'true' } } }, { maxFailures: { nodes: 1 } }],
      maxFailures: 0,
    },
  ],
  [
    'a failure within the budget of its wave, whatever the budget of the plan',
    false,
    { states: [{ w1: 'failed', w2: 'done' }], facts: { w1: CANARY } },
    {
      waves: [{ selector: { matchLabels: { canary: 'true' } }, maxFailures: { nodes: 1 } }, {}],
      maxFailures: 0,
    },
  ],
  [
    'a success at the same time as the failure before it',
    false,
    { states: [{ w1: 'done' }, { w2: 'failed' }] },
    { maxConsecutiveFailures: 0 },
  ],
  [
    'a node that fails in two stages counts once',
    false,
    { states: [FAILED, FAILED] },
    { maxFailures: 1 },
  ],
  [
    'a failed target that keeps its slot',
    false,
    { states: [FAILED], stage: { failedHoldSlots: true } },
    { maxFailures: 0 },
  ],
  [
    'a failure that is tried again',
    false,
    { states: [FAILED], parts: CAN_RETRY },
    { maxFailures: 0, retry: RETRY },
  ],
  [
    'failures one after the other that are tried again',
    false,
    { states: [FAILED], parts: CAN_RETRY },
    { maxConsecutiveFailures: 0, retry: RETRY },
  ],
  [
    'a drain that took too long and is tried again',
    false,
    { states: [FAILED], rollout: TOO_LONG, parts: CAN_RETRY },
    { retry: RETRY },
  ],
  [
    'a drain that took too long while only another node is tried again',
    true,
    {
      states: [{ w1: 'failed', w2: 'failed' }],
      rollout: TOO_LONG,
      parts: CAN_RETRY,
      facts: { w2: { exists: false } },
    },
    { retry: RETRY },
  ],
  [
    'a drain that took too long under a policy that goes on without the node',
    false,
    { states: [FAILED], rollout: TOO_LONG },
    { drain: { ...buildPolicy().drain, onDeadline: 'skip' } },
  ],
  [
    'another reason',
    false,
    { states: [FAILED], rollout: { reason: because('TargetFailed', 'w1: no') } },
    {},
  ],
])('%s: whether failures stop the plan is %s', (_title, isOver, scene, policy) => {
  expect(isOverBudget(snapshotOf(scene), policyOf(policy))).toBe(isOver);
});

test('failures of controllers are not among those one after the other', () => {
  const rollout = buildRollout([
    buildStage('controller', [buildTarget('c1', 'done', { since: later(9 * MINUTE) })]),
    buildStage('worker', [buildTarget('w1', 'failed')]),
  ]);
  const policy = policyOf({ maxConsecutiveFailures: 0 });
  expect(describeUsedUpBudget(buildSnapshot(rollout), policy)?.message).toBe(
    '1 node failed one after the other (w1), more than maxConsecutiveFailures 0 of UpgradePolicy nightly allows',
  );
});

test('too many skipped nodes give the reason for the end of the plan, and other limits do not', () => {
  const skipped = snapshotOf({ states: [{ w1: 'skipped', w2: 'pending' }] });
  expect(tooManyBlocked(skipped, policyOf({ maxBlocked: 0 }))).toEqual({
    code: 'Stopped',
    message:
      '1 node could not be drained or was held (w1), more than maxBlockedNodes 0 of UpgradePolicy nightly allows',
  });
  expect(tooManyBlocked(skipped, policyOf())).toBeUndefined();
  expect(
    tooManyBlocked(snapshotOf({ states: [FAILED] }), policyOf({ maxFailures: 0 })),
  ).toBeUndefined();
});

test.each<[string, boolean, Scene, Partial<RolloutPolicy>]>([
  ['goes on', false, { states: [{ w1: 'pending' }] }, {}],
  [
    'is aborted',
    true,
    {
      states: [{ w1: 'pending' }],
      parts: { plan: { controls: { ...NO_CONTROLS, abort: 'ann' } } },
    },
    {},
  ],
  ['has used up its budget', true, { states: [FAILED] }, { maxFailures: 0 }],
  [
    'is now invalid',
    true,
    { states: [{ w1: 'pending' }], rollout: { problems: [because('InvalidPlan', 'no version')] } },
    {},
  ],
  [
    'waits for a retry of a worker',
    false,
    { states: [FAILED], parts: CAN_RETRY },
    { retry: RETRY },
  ],
  [
    'waits for a retry of a drain that stops the plan',
    true,
    { states: [FAILED], rollout: TOO_LONG, parts: CAN_RETRY },
    { retry: RETRY },
  ],
])('a plan that %s: whether nothing new starts is %s', (_title, expected, scene, policy) => {
  expect(isStopping(snapshotOf(scene), policyOf(policy))).toBe(expected);
});

test('a percentage counts the different workers of all stages, and no controllers', () => {
  const percent = policyOf({ maxFailuresPercent: 50 });
  const names = ['w1', 'w2', 'w3', 'w4'];
  const workers = buildStage('worker', names);
  const again = buildStage('worker', ['w1', 'w2', 'w5', 'w6'], { command: 1 });
  const controllers = buildStage('controller', names);
  const shareOf = (...stages: readonly Stage[]): number =>
    withBudgetOf(buildRollout(stages), percent).maxFailures;
  expect(shareOf(controllers, workers)).toBe(2);
  expect(shareOf(controllers, workers, again)).toBe(3);
  expect(shareOf(controllers)).toBe(0);
  const fixed = policyOf();
  expect(withBudgetOf(buildRollout([workers]), fixed)).toBe(fixed);
});

const ENDED: Scene = {
  states: [
    { w1: 'failed', w2: 'pending' },
    { w2: 'pending', w3: 'pending' },
  ],
  rollout: { phase: 'failed', reason: because('TargetFailed', 'w1: no') },
};

test('a plan that failures have ended names the limit and each node that never started once', () => {
  expect(endByBudget(snapshotOf(ENDED), policyOf({ maxFailures: 0 }))).toEqual({
    limit: '1 node failed (w1), more than failureBudget 0 of UpgradePolicy nightly allows',
    unstarted: ['w2', 'w3'],
  });
});

test('a plan that failures have ended says that the present policy allows them', () => {
  expect(endByBudget(snapshotOf(ENDED), policyOf())).toEqual({
    limit:
      '1 node failed (w1) and the plan ended, although failureBudget 9 of UpgradePolicy nightly allows that now',
    unstarted: ['w2', 'w3'],
  });
});

test.each<[string, Scene]>([
  ['still runs', { ...ENDED, rollout: { ...ENDED.rollout, phase: 'running' } }],
  ['has started all nodes', { ...ENDED, states: [{ w1: 'failed', w2: 'done' }] }],
  ['is aborted', { ...ENDED, parts: { plan: { controls: { ...NO_CONTROLS, abort: 'ann' } } } }],
  ['was aborted', { ...ENDED, rollout: { phase: 'failed', reason: because('Aborted', 'by ann') } }],
])('a plan that %s has no end by its failures', (_title, scene) => {
  expect(endByBudget(snapshotOf(scene), policyOf({ maxFailures: 0 }))).toBeUndefined();
});

test.each<[string, Partial<Rollout>]>([
  ['about another node', { reason: because('TargetFailed', 'w9: no') }],
  ['about no node', { reason: because('TargetFailed', 'no') }],
  ['that is missing', { reason: undefined }],
])('failures that the policy allows are no cause of an end with a reason %s', (_title, rollout) => {
  const scene = { ...ENDED, rollout: { phase: 'failed' as const, ...rollout } };
  expect(endByBudget(snapshotOf(scene), policyOf())).toBeUndefined();
});

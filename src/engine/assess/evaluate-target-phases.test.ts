/** Tests what the evaluation of one target contains: the phase, the effect, the state to record, and the message. */

import { expect, test } from 'vitest';
import {
  failed,
  NONE,
  sent,
  succeeded,
  working,
} from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildFacts, buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { answered } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { assess } from './assess.ts';
import type { TargetEvaluation } from './evaluation.ts';
import { isLate, stepEnd } from './target-deadlines.ts';

interface Situation {
  readonly state?: RecordedState;
  readonly facts?: Partial<TargetFacts>;
  readonly more?: SnapshotChanges;
  readonly problems?: Snapshot['rollout']['problems'];
  readonly now?: number;
  readonly restMs?: number;
}

function evaluationsOf({
  state = 'intended',
  facts = {},
  more,
  problems = [],
  now = 0,
  restMs,
}: Situation) {
  const resting = restMs === undefined ? {} : { restMs };
  const stage = buildStage('worker', [buildTarget('w1', state)], resting);
  const snapshot = withParts(
    buildSnapshot(buildRollout([stage], { problems }), { w1: facts }),
    more,
  );
  const [target = buildTarget('w1')] = stage.targets;
  const assessment = assess(snapshot, buildPolicy(), T0 + now);
  return { assessment, stage, target };
}

function evaluationOf(situation: Situation): TargetEvaluation {
  const { assessment, stage, target } = evaluationsOf(situation);
  return assessment.of(stage, target);
}

const asks: Observation = {
  kind: 'working',
  step: 'Cordoning',
  attempt: later(0),
  since: later(0),
  part: 'drain',
  waitsFor: 'drain',
};
const rolledBack: Observation = {
  kind: 'failed',
  message: 'crash',
  attempt: later(0),
  since: later(0),
  report: { rolledBack: true },
};
const INTENDED = { phase: 'intended', effect: 'none' } as const;
const PROBLEM = because('InvalidPlan', 'spec.id must name this run');
const long = 9 * HOUR;

test.each<[string, Situation, object]>([
  [
    'is about to be signalled',
    {},
    {
      phase: 'intended',
      effect: 'signal',
      reason: because('Intended', 'w1 is about to be signalled'),
    },
  ],
  [
    'is half done by a process that has ended: no gate, pause or abort keeps it so',
    {
      facts: { observation: { kind: 'none', begun: true }, ready: false },
      more: { plan: { controls: { ...NO_CONTROLS, paused: true, abort: 'wrong' } } },
    },
    {
      phase: 'intended',
      effect: 'signal',
      reason: because('Intended', 'w1 is about to be signalled'),
    },
  ],
  [
    'was not signalled for a minute: its intent is recorded anew',
    { now: MINUTE },
    { ...INTENDED, next: 'intended', reason: because('Intended', 'w1 is about to be signalled') },
  ],
  [
    'was not signalled when the rollout was aborted',
    { more: { plan: { controls: { ...NO_CONTROLS, abort: 'wrong' } } } },
    { ...INTENDED, next: 'pending', reason: because('Aborted', 'w1 was not started') },
  ],
  [
    'was not signalled when the plan became wrong',
    { problems: [PROBLEM] },
    { ...INTENDED, reason: PROBLEM, ends: 'the plan is corrected', gate: 'plan-valid' },
  ],
  [
    'was not signalled, and its node is not Ready',
    { facts: { ready: false } },
    {
      ...INTENDED,
      reason: because('NodeNotReady', 'node w1 is not Ready'),
      ends: 'the node is Ready',
      gate: 'node-ready',
    },
  ],
  [
    'was not signalled, and has no platform any more',
    { facts: { platform: 'linux-arm64' } },
    {
      ...INTENDED,
      next: 'unsupported',
      reason: because(
        'PlatformUnsupported',
        'w1 is linux-arm64; the plan has downloads for linux-amd64: add the platform of the node to the plan, or leave the node out',
      ),
    },
  ],
  [
    'is done',
    { facts: { observation: succeeded() } },
    {
      phase: 'verifying',
      effect: 'verify',
      next: 'done',
      reason: because('Completed', 'w1 is done'),
      ends: 'the leader records it',
    },
  ],
  [
    'is not Ready when its time is over',
    { facts: { observation: succeeded(), ready: false, watchedMs: long }, now: long },
    {
      phase: 'failed',
      effect: 'verify',
      next: 'failed',
      reason: because('NodeNotReady', 'node w1 is not Ready'),
    },
  ],
  [
    'was adopted while it was verified',
    { state: 'pending', facts: { observation: succeeded() } },
    {
      phase: 'verifying',
      effect: 'adopt',
      next: 'intended',
      reason: because('InFlight', 'w1 is at verifying'),
    },
  ],
  [
    'reports its failure',
    { facts: { observation: failed('404') } },
    { phase: 'failed', effect: 'fail', next: 'failed', reason: because('TargetFailed', 'w1: 404') },
  ],
  [
    'reports its failure, and its way back',
    { facts: { observation: rolledBack } },
    {
      phase: 'failed',
      effect: 'fail',
      next: 'failed',
      reason: because('TargetFailed', 'w1: crash (its previous version runs again)'),
    },
  ],
  [
    'never answered',
    { facts: { observation: sent(), watchedMs: long }, now: long },
    {
      phase: 'failed',
      effect: 'fail',
      next: 'failed',
      reason: because('DeadlineExceeded', 'w1 did not report within its deadline'),
    },
  ],
  [
    'stayed at a step',
    { facts: { observation: working('Restart'), watchedMs: long }, now: long },
    {
      phase: 'failed',
      effect: 'fail',
      next: 'failed',
      reason: because('DeadlineExceeded', 'w1 did not report within its deadline at Restart'),
    },
  ],
  [
    'stayed at a step, and drains itself',
    {
      facts: { observation: working('Restart'), watchedMs: long, drainDelegation: answered(false) },
      now: long,
    },
    {
      phase: 'failed',
      effect: 'fail',
      next: 'failed',
      reason: because('DeadlineExceeded', 'w1 did not report within its deadline at Restart'),
    },
  ],
  [
    'drains itself, and took too long for it',
    { facts: { observation: asks, watchedMs: long, drainDelegation: answered(false) }, now: long },
    {
      phase: 'failed',
      effect: 'fail',
      next: 'failed',
      reason: because(
        'DrainTooLong',
        'w1, which drains itself, was not drained within its deadline',
      ),
    },
  ],
  [
    'asks for its drain, and the whole took too long',
    { facts: { observation: asks, watchedMs: long, drainDelegation: answered(true) }, now: long },
    {
      phase: 'failed',
      effect: 'fail',
      next: 'failed',
      reason: because('DeadlineExceeded', 'w1 was not done within its deadline, at Cordoning'),
    },
  ],
])('a target that %s', (_name, situation, expected) => {
  expect(evaluationOf(situation)).toEqual(expected);
});

test('a target that rests is not late, also for the leader that watched it', () => {
  const facts = { observation: succeeded(), watchedMs: 2.5 * HOUR };
  expect(evaluationOf({ facts, now: 2.5 * HOUR, restMs: 3 * HOUR })).toMatchObject({
    phase: 'verifying',
    reason: { code: 'Resting' },
  });
});

test('a target is evaluated once, however often a decision looks at it', () => {
  const { assessment, stage, target } = evaluationsOf({});
  expect(assessment.of(stage, target)).toBe(assessment.of(stage, target));
});

test.each<[string, Observation, number]>([
  ['no report', NONE, Number.POSITIVE_INFINITY],
  ['a failure', failed('404'), Number.POSITIVE_INFINITY],
  ['a signal', sent(), T0 + buildPolicy().stepDeadlines.answer],
  ['a success', succeeded(), T0 + buildPolicy().stepDeadlines.ready],
  ['a step without a deadline', working('Restart'), Number.POSITIVE_INFINITY],
  ['a time that nobody can read', sent('once'), Number.POSITIVE_INFINITY],
])('when the step ends by the clock of the node: %s', (_name, observation, expected) => {
  expect(stepEnd(buildTarget('w1', 'intended'), buildFacts({ observation }), buildPolicy())).toBe(
    expected,
  );
});

test('the step of a retried node that reported its success before the retry begins at the retry', () => {
  const target = buildTarget('w1', 'intended', { since: later(HOUR) });
  const { ready } = buildPolicy().stepDeadlines;
  expect(stepEnd(target, buildFacts({ observation: succeeded() }), buildPolicy())).toBe(
    T0 + HOUR + ready,
  );
});

test('a node gets a minute to report after an absence of the leader, and no more', () => {
  const lateAfter = (watchedMs: number): boolean => {
    const facts = { ...buildFacts({ observation: working('Restart') }), watchedMs };
    return isLate(buildTarget('w1', 'intended'), facts, buildPolicy(), T0 + long);
  };
  expect([lateAfter(MINUTE - 1), lateAfter(MINUTE)]).toEqual([false, true]);
});

test('a target that is about to be signalled has all of its time', () => {
  const facts = {
    ...buildFacts({ observation: NONE }),
    watchedMs: buildPolicy().stepDeadlines.ready,
  };
  expect(
    isLate(
      buildTarget('w1', 'intended'),
      facts,
      buildPolicy({ targetDeadlineMs: long }),
      T0 + MINUTE,
    ),
  ).toBe(false);
});

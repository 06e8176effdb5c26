/** Tests which slots failed targets keep or free, and how a rollout ends. */

import { describe, expect, test } from 'vitest';
import { check, NOW, POLICY, running } from '../../../test/support/builders/advances.ts';
import { decide } from '../../../test/support/builders/decisions.ts';
import { failed, sent, succeeded, working } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { Stage, Target } from '../model/rollout.ts';

const c = buildTarget;

describe('a failed target within the failure budget that still works', () => {
  const stages = [buildStage('worker', [c('w1', 'failed'), c('w2'), c('w3')])];
  const policy = { maxFailures: 1 };
  const held = { w1: 'failed', w2: 'pending', w3: 'pending', ...running, recorded: 'nothing' };
  const goesOn = { ...held, w2: 'intended', recorded: undefined };
  const now = T0 + 10 * MINUTE;
  const atWork = working('ApplyingUpdate', later(0), later(0));
  check([
    [
      'keeps its slot: two would move at once',
      { stages, policy, now, facts: { w1: { observation: atWork } } },
      held,
    ],
    [
      'so does one that may still begin',
      { stages, policy, now, facts: { w1: { observation: sent() } } },
      held,
    ],
    [
      'lets go of it at its end',
      { stages, policy, now, facts: { w1: { observation: failed('404') } } },
      goesOn,
    ],
    [
      'or where its node is down: that is what the budget is for',
      { stages, policy, now, facts: { w1: { observation: atWork, ready: false } } },
      goesOn,
    ],
    [
      'and is not waited for for ever',
      { stages, policy, now: T0 + 2 * HOUR, facts: { w1: { observation: atWork } } },
      goesOn,
    ],
    [
      'keeps those of a later command too',
      {
        stages: [
          buildStage('worker', [c('w1', 'failed')]),
          buildStage('controller', ['c1'], { command: 1 }),
        ],
        policy,
        now,
        facts: { w1: { observation: atWork } },
      },
      { w1: 'failed', c1: 'pending', ...running, recorded: 'nothing' },
    ],
  ]);
});

describe('where a target that failed keeps its slot', () => {
  const held = (...targets: Stage['targets']): Stage[] => [
    buildStage('worker', targets, { maxInFlight: 2, failedHoldSlots: true }),
  ];
  const w1 = c('w1', 'intended');
  const w2 = c('w2', 'intended');
  const w3 = c('w3');
  check([
    [
      'nobody takes it at the moment of the failure',
      {
        stages: held(w1, w2, w3),
        facts: { w1: { observation: failed('no') }, w2: { observation: sent() } },
      },
      { w1: 'failed', w2: 'intended', w3: 'pending', ...running, reason: 'TargetFailed' },
    ],
    [
      'nor later; but the other slot goes on',
      { stages: held(c('w1', 'failed'), w2, w3), facts: { w2: { observation: succeeded() } } },
      { w1: 'failed', w2: 'done', w3: 'intended', ...running },
    ],
    [
      'with every slot held nothing starts, and nothing ends',
      { stages: held(c('w1', 'failed'), c('w2', 'failed'), w3) },
      { w1: 'failed', w2: 'failed', w3: 'pending', ...running, recorded: 'nothing' },
    ],
    [
      'the stage is not over while one has failed, and the next does not begin',
      {
        stages: [
          ...held(c('w1', 'failed'), c('w2', 'done')),
          buildStage('worker', ['w4'], { command: 1 }),
        ],
      },
      { w1: 'failed', w2: 'done', w4: 'pending', ...running, recorded: 'nothing' },
    ],
    [
      'all done: it ends well',
      { stages: held(c('w1', 'done'), c('w2', 'done')) },
      { w1: 'done', w2: 'done', phase: 'done' },
    ],
  ]);
});

describe('how it ends', () => {
  const two = (first: Stage['targets'][number], ...rest: string[]): Stage[] => [
    buildStage('worker', [first, ...rest], { maxInFlight: 2 }),
  ];
  check([
    [
      'without targets: at once, and it says so',
      { stages: [] },
      { phase: 'done', reason: 'NoTargets' },
    ],
    [
      'after a failure, the rollout waits for the node in progress and starts no other node',
      {
        stages: [
          buildStage('worker', [c('w1', 'failed'), c('w2', 'intended'), 'w3'], { maxInFlight: 2 }),
        ],
        facts: { w2: { observation: working('Restart') } },
      },
      { w1: 'failed', w2: 'intended', w3: 'pending', ...running, recorded: 'nothing' },
    ],
    [
      'after a failure, once the other in flight is done',
      {
        stages: [
          buildStage('worker', [c('w1', 'failed'), c('w2', 'intended'), 'w3'], { maxInFlight: 2 }),
        ],
        facts: { w2: { observation: succeeded() } },
      },
      { w1: 'failed', w2: 'done', w3: 'pending', phase: 'failed' },
    ],
    [
      'a failed node within the failure budget does not stop the other nodes',
      { stages: two(c('w1', 'failed'), 'w2'), policy: { maxFailures: 1 } },
      { w1: 'failed', w2: 'intended', ...running },
    ],
    [
      'with failures within the budget: as failed, and it names them',
      {
        stages: [buildStage('worker', [c('w1', 'failed'), c('w2', 'done')])],
        policy: { maxFailures: 1 },
        rollout: { reason: { code: 'TargetFailed', message: 'w1: 404' } },
      },
      { w1: 'failed', w2: 'done', phase: 'failed', reason: 'DoneWithFailures' },
    ],
    [
      'with a missing target within the budget: as incomplete',
      {
        stages: [buildStage('worker', [c('w1', 'missing'), c('w2', 'done')])],
        policy: { maxFailures: 1 },
      },
      { w1: 'missing', w2: 'done', phase: 'incomplete', reason: 'DoneWithFailures' },
    ],
    [
      'with a failure that a later command has made good: well',
      {
        stages: [
          buildStage('worker', [c('w1', 'failed'), c('w2', 'done')]),
          buildStage('worker', [c('w1', 'done'), c('w2', 'done')], { command: 1 }),
        ],
        policy: { maxFailures: 1 },
      },
      { w1: 'done', w2: 'done', phase: 'done' },
    ],
    [
      'a target that is found missing uses the budget up before another starts in the same write',
      {
        stages: [buildStage('worker', ['w1', 'w2'], { maxInFlight: 2 })],
        facts: { w2: { exists: false } },
      },
      { w1: 'pending', w2: 'missing', phase: 'incomplete', reason: 'TargetMissing' },
    ],
    [
      'if a node is missing within the failure budget, the other nodes start',
      {
        stages: [buildStage('worker', ['w1', 'w2', 'w3'], { maxInFlight: 2 })],
        facts: { w2: { exists: false } },
        policy: { maxFailures: 1 },
      },
      { w1: 'intended', w2: 'missing', w3: 'intended', ...running, reason: 'TargetMissing' },
    ],
    [
      'the first reason stays, whatever comes after it',
      {
        stages: [buildStage('worker', [c('w1', 'failed'), c('w2', 'intended')])],
        facts: { w2: { exists: false } },
        rollout: { reason: { code: 'TargetFailed', message: 'first' } },
      },
      { w1: 'failed', w2: 'failed', phase: 'failed', reason: 'TargetFailed' },
    ],
    [
      'an end is for good: nothing is recorded or signalled after it',
      { stages: [buildStage('worker', [c('w1', 'intended'), 'w2'])], rollout: { phase: 'failed' } },
      { w1: 'intended', w2: 'pending', phase: 'failed', recorded: 'nothing' },
    ],
  ]);
});

describe('a running plan that was changed to an invalid one', () => {
  const problems = [{ code: 'InvalidPlan', message: 'spec.id must name this run' } as const];
  const stage = (...targets: Stage['targets'][number][]): Stage[] => [
    buildStage('worker', targets),
  ];
  check([
    [
      'starts nobody',
      { stages: stage(c('w1', 'done'), c('w2')), rollout: { problems } },
      { w1: 'done', w2: 'pending', ...running, recorded: 'nothing' },
    ],
    [
      'nor signals what was about to start',
      { stages: stage(c('w1', 'intended'), c('w2')), rollout: { problems } },
      { w1: 'intended', w2: 'pending', ...running, recorded: 'nothing' },
    ],
    [
      'follows what is in flight',
      {
        stages: stage(c('w1', 'intended'), c('w2')),
        facts: { w1: { observation: succeeded() } },
        rollout: { problems },
      },
      { w1: 'done', w2: 'pending', ...running },
    ],
    [
      'never ends well, even if nothing is left to do: what was added to it was not done',
      {
        stages: stage(c('w1', 'intended')),
        facts: { w1: { observation: succeeded() } },
        rollout: { problems },
      },
      { w1: 'done', ...running },
    ],
    [
      'fails with a target that fails',
      {
        stages: stage(c('w1', 'intended')),
        facts: { w1: { observation: failed('404') } },
        rollout: { problems },
      },
      { w1: 'failed', phase: 'failed', reason: 'TargetFailed' },
    ],
  ]);
});

test('an abort ends a rollout as failed, and does not change one that has nothing left to do', () => {
  const controls = { ...NO_CONTROLS, abort: 'wrong' };
  const endOf = (...targets: Target[]): object | undefined => {
    const rollout = buildRollout([buildStage('worker', targets)], { blocked: true });
    return decide(withParts(buildSnapshot(rollout), { plan: { controls } }), POLICY, NOW).record;
  };
  const reason = { code: 'Aborted', message: 'the plan was aborted: wrong' };
  expect(endOf(c('w1', 'done'), c('w2'))).toMatchObject({
    phase: 'failed',
    blocked: false,
    reason,
  });
  expect(endOf(c('w1', 'done'))).toMatchObject({ phase: 'done', blocked: false });
});

test('a plan that is over within its failure budget says how many are done and who failed', () => {
  const workers = Array.from({ length: 8 }, (_, index) =>
    c(`worker${index}`, index === 2 ? 'failed' : 'done'),
  );
  const { record } = decide(
    buildSnapshot(buildRollout([buildStage('worker', workers)])),
    { ...POLICY, maxFailures: 1 },
    NOW,
  );
  expect(record?.reason).toEqual({
    code: 'DoneWithFailures',
    message: '7 of 8 targets done; failed: worker2',
  });
});

test('the reason of a rollout without targets says that nothing was done', () => {
  const { record } = decide(buildSnapshot(buildRollout([])), POLICY, NOW);
  expect(record?.reason).toEqual({
    code: 'NoTargets',
    message: 'there was no target, so nothing was done',
  });
});

test('a rollout whose slots are taken is not blocked by those that wait', () => {
  const stage = buildStage('worker', ['w1', 'w2'], { maxInFlight: 1 });
  const { record } = decide(
    buildSnapshot(buildRollout([stage]), { w1: { ready: false } }),
    POLICY,
    NOW,
  );
  expect(record).toMatchObject({ phase: 'running', blocked: false });
});

/** The moves of a running rollout: each target's row, the next targets, and the end. */
import { describe, expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { failed, sent, succeeded, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { EndpointHealth, TargetFacts } from '../model/decision.ts';
import type { Role, Rollout, Stage, Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

const POLICY = buildPolicy();
const NOW = T0 + 10 * MINUTE;
const DOWN: EndpointHealth[] = [{ name: 'c2', ready: false, detail: '/readyz says 500' }];

type Facts = Record<string, Partial<TargetFacts>>;
interface Situation {
  readonly stages: readonly Stage[];
  readonly facts?: Facts;
  readonly rollout?: Partial<Rollout>;
  readonly controlPlane?: readonly EndpointHealth[] | 'unasked';
  readonly policy?: Partial<RolloutPolicy>;
  readonly now?: number;
}
/** What is recorded then: the states by name, and how the rollout stands. */
type Outcome = Readonly<Record<string, unknown>>;

function outcomeOf({
  stages,
  facts,
  rollout,
  controlPlane,
  policy,
  now = NOW,
}: Situation): Outcome {
  const snapshot = buildSnapshot(buildRollout(stages, rollout), facts, controlPlane);
  const { record, signals } = decide(snapshot, { ...POLICY, ...policy }, now);
  const after = record ?? snapshot.rollout;
  const states = after.stages.flatMap(({ targets }) =>
    targets.map(({ name, state }): [string, unknown] => [name, state]),
  );
  return {
    ...Object.fromEntries(states),
    phase: after.phase,
    ...(after.reason ? { reason: after.reason.code } : {}),
    ...(after.blocked ? { blocked: true } : {}),
    ...(record ? {} : { recorded: 'nothing' }),
    ...(signals.length > 0 ? { signalled: signals.map(({ target }) => target.name) } : {}),
  };
}

const check = (rows: [string, Situation, Outcome][]): void => {
  test.each(rows)('%s', (_name, situation, outcome) =>
    expect(outcomeOf(situation)).toEqual(outcome),
  );
};

const c = buildTarget;
const running = { phase: 'running' };

describe('who starts', () => {
  const controllers = (...targets: (string | ReturnType<typeof c>)[]): Stage =>
    buildStage('controller', targets);
  const workers = (maxInFlight: number, ...targets: (string | ReturnType<typeof c>)[]): Stage =>
    buildStage('worker', targets, { maxInFlight });
  check([
    [
      'the first controller of the list, and no other',
      { stages: [controllers('c2', 'c1'), workers(5, 'w1')] },
      { c2: 'intended', c1: 'pending', w1: 'pending', ...running },
    ],
    [
      'one controller only, even if the stage asks for three',
      { stages: [buildStage('controller', ['c1', 'c2', 'c3'], { maxInFlight: 3 })] },
      { c1: 'intended', c2: 'pending', c3: 'pending', ...running },
    ],
    [
      'no controller while one is in flight',
      {
        stages: [controllers(c('c1', 'intended'), 'c2')],
        facts: { c1: { observation: working('Restart') } },
      },
      { c1: 'intended', c2: 'pending', ...running, recorded: 'nothing' },
    ],
    [
      'no worker while a controller is in flight, although every slot of theirs is free',
      {
        stages: [controllers(c('c1', 'intended')), workers(5, 'w1')],
        facts: { c1: { observation: sent() } },
      },
      { c1: 'intended', w1: 'pending', ...running, recorded: 'nothing' },
    ],
    [
      'workers as soon as the last controller is done, in the same write',
      {
        stages: [controllers(c('c1', 'intended')), workers(2, 'w1', 'w2', 'w3')],
        facts: { c1: { observation: succeeded() } },
      },
      { c1: 'done', w1: 'intended', w2: 'intended', w3: 'pending', ...running },
    ],
    [
      'workers in list order, up to the limit',
      { stages: [workers(2, 'w3', 'w1', 'w2')] },
      { w3: 'intended', w1: 'intended', w2: 'pending', ...running },
    ],
    [
      'the next worker as soon as one is done, in the same write',
      {
        stages: [workers(2, c('w1', 'intended'), c('w2', 'intended'), 'w3')],
        facts: { w1: { observation: succeeded() }, w2: { observation: working('Downloading') } },
      },
      { w1: 'done', w2: 'intended', w3: 'intended', ...running },
    ],
    [
      'nobody more where the limit was lowered below what is in flight',
      {
        stages: [workers(1, c('w1', 'intended'), c('w2', 'intended'), 'w3')],
        facts: { w1: { observation: sent() }, w2: { observation: sent() } },
      },
      { w1: 'intended', w2: 'intended', w3: 'pending', ...running, recorded: 'nothing' },
    ],
    [
      'the ones behind a worker that is not Ready',
      { stages: [workers(2, 'w1', 'w2', 'w3')], facts: { w1: { ready: false } } },
      { w1: 'pending', w2: 'intended', w3: 'intended', ...running },
    ],
    [
      'nobody where none is Ready: blocked, and no failure',
      {
        stages: [workers(2, 'w1', 'w2')],
        facts: { w1: { ready: false }, w2: { ready: undefined } },
      },
      { w1: 'pending', w2: 'pending', ...running, blocked: true },
    ],
    [
      'no controller while an API server is down, in the plan or not',
      { stages: [controllers('c1')], controlPlane: DOWN },
      { c1: 'pending', ...running, blocked: true },
    ],
    [
      'a controller again when all API servers are ready',
      { stages: [controllers('c1')], rollout: { blocked: true } },
      { c1: 'intended', ...running },
    ],
    [
      'workers whatever the API servers say',
      { stages: [workers(1, 'w1')], controlPlane: DOWN },
      { w1: 'intended', ...running },
    ],
    [
      'no controller where nobody has asked the API servers: not blocked, only not known',
      { stages: [controllers('c1')], controlPlane: 'unasked' },
      { c1: 'pending', ...running, recorded: 'nothing' },
    ],
    [
      'the second command only when the first is done, node for node',
      {
        stages: [
          controllers(c('c1', 'done')),
          workers(1, c('w1', 'intended')),
          buildStage('controller', ['c1x'], { command: 1 }),
        ],
        facts: { w1: { observation: succeeded() } },
      },
      { c1: 'done', w1: 'done', c1x: 'intended', ...running },
    ],
    [
      'nobody of the second command while the last worker of the first is in flight',
      {
        stages: [workers(1, c('w1', 'intended')), buildStage('controller', ['c1'], { command: 1 })],
        facts: { w1: { observation: working('Restart') } },
      },
      { w1: 'intended', c1: 'pending', ...running, recorded: 'nothing' },
    ],
  ]);
});

describe('the step that follows from a report', () => {
  const intended = (since = later(0)): Stage[] => [
    buildStage('worker', [c('w1', 'intended', { since })]),
  ];
  const pending: Stage[] = [buildStage('worker', ['w1', 'w2'])];
  check([
    [
      'an intent of a moment ago is signalled, under its own name',
      { stages: intended(later(10 * MINUTE - 1000)) },
      { w1: 'intended', ...running, recorded: 'nothing', signalled: ['w1'] },
    ],
    [
      'a signal without an answer: nothing',
      { stages: intended(), facts: { w1: { observation: sent() } } },
      { w1: 'intended', ...running, recorded: 'nothing' },
    ],
    [
      'success of a Ready node: done',
      { stages: intended(), facts: { w1: { observation: succeeded() } } },
      { w1: 'done', phase: 'done' },
    ],
    [
      'success of a node that is not Ready: not done yet',
      { stages: intended(), facts: { w1: { observation: succeeded(), ready: false } } },
      { w1: 'intended', ...running, recorded: 'nothing' },
    ],
    [
      'failure: failed, and the rollout with it',
      { stages: intended(), facts: { w1: { observation: failed('404') } } },
      { w1: 'failed', phase: 'failed', reason: 'TargetFailed' },
    ],
    [
      'the object is gone: failed',
      { stages: intended(), facts: { w1: { exists: false } } },
      { w1: 'failed', phase: 'failed', reason: 'TargetGone' },
    ],
    [
      'the object is gone before its turn: missing',
      { stages: [buildStage('worker', ['w1'])], facts: { w1: { exists: false } } },
      { w1: 'missing', phase: 'incomplete', reason: 'TargetMissing' },
    ],
    [
      'a platform that the plan lost before its turn: unsupported',
      { stages: [buildStage('worker', ['w1'])], facts: { w1: { platform: 'linux-arm64' } } },
      { w1: 'unsupported', phase: 'incomplete', reason: 'PlatformUnsupported' },
    ],
    [
      'signalled but not recorded by another leader: recorded, and its slot is taken',
      { stages: pending, facts: { w2: { observation: sent(later(MINUTE)) } } },
      { w1: 'pending', w2: 'intended', ...running },
    ],
    [
      'at work but not recorded: the same',
      { stages: pending, facts: { w2: { observation: working('Restart', later(MINUTE)) } } },
      { w1: 'pending', w2: 'intended', ...running },
    ],
    [
      'done but not recorded: verified and done, and the next one starts',
      { stages: pending, facts: { w1: { observation: succeeded(later(MINUTE)) } } },
      { w1: 'done', w2: 'intended', ...running },
    ],
    [
      'done but not recorded, and not Ready: its slot is taken until it is',
      { stages: pending, facts: { w1: { observation: succeeded(later(MINUTE)), ready: false } } },
      { w1: 'intended', w2: 'pending', ...running },
    ],
    [
      'failed but not recorded: failed',
      { stages: pending, facts: { w1: { observation: failed('404') } } },
      { w1: 'failed', w2: 'pending', phase: 'failed', reason: 'TargetFailed' },
    ],
    [
      'two controllers that another leader signalled at once: both are recorded, and nobody joins them',
      {
        stages: [buildStage('controller', ['c1', 'c2', 'c3'])],
        facts: { c2: { observation: sent() }, c3: { observation: working('Restart') } },
      },
      { c1: 'pending', c2: 'intended', c3: 'intended', ...running },
    ],
  ]);

  test('a target that is taken over keeps the name of its attempt, so that its signal stays its own', () => {
    const snapshot = buildSnapshot(buildRollout(pending), {
      w2: { observation: sent(later(MINUTE)) },
    });
    const after = decide(snapshot, POLICY, NOW).record;
    expect(after?.stages[0]?.targets[1]?.since).toBe(later(MINUTE));
  });
});

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
  const [w1, w2, w3] = [c('w1', 'intended'), c('w2', 'intended'), c('w3')];
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
      'after a failure nothing new starts while another is in flight',
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
      'a failure within the budget lets the others go on',
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
      'a target that is found missing within the budget: the others start',
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

test.each<[string, Role, Partial<Stage>, string]>([
  ['a failed controller ends the rollout, whatever the budget', 'controller', {}, 'failed'],
  ['a failed worker does not', 'worker', {}, 'running'],
  [
    'nor does a failed controller that keeps its slot',
    'controller',
    { failedHoldSlots: true, maxInFlight: 2 },
    'running',
  ],
])('%s', (_name, role, more, phase) => {
  const stage = buildStage(role, [c('n1', 'failed'), 'n2'], more);
  const snapshot = buildSnapshot(buildRollout([stage]), { n1: { observation: failed('404') } });
  const { record } = decide(snapshot, { ...POLICY, maxFailures: 9 }, NOW);
  expect(record?.phase ?? 'running').toBe(phase);
});

test('an abort ends a rollout as failed, and does not change one that has nothing left to do', () => {
  const controls = { ...NO_CONTROLS, abort: 'wrong' };
  const endOf = (...targets: Target[]): object | undefined => {
    const rollout = buildRollout([buildStage('worker', targets)], { blocked: true });
    return decide({ ...buildSnapshot(rollout), controls }, POLICY, NOW).record;
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

test('a rollout without targets says so', () => {
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

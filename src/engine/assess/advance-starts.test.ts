/** Tests which targets start, and which step follows from a report. */
import { describe, expect, test } from 'vitest';
import { check, NOW, POLICY, running } from '../../../test/support/builders/advances.ts';
import { decide } from '../../../test/support/builders/decisions.ts';
import { failed, sent, succeeded, working } from '../../../test/support/builders/observations.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE } from '../../../test/support/clock/times.ts';
import type { Role, Stage } from '../model/rollout.ts';
import type { EndpointHealth } from '../model/snapshot.ts';

const c = buildTarget;

const DOWN: EndpointHealth[] = [{ name: 'c2', ready: false, detail: '/readyz says 500' }];

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
      'nobody beside a target that is found missing, because it may use up the failure budget',
      { stages: [workers(3, 'w1', 'w2', 'w3')], facts: { w2: { exists: false } } },
      {
        w1: 'pending',
        w2: 'missing',
        w3: 'pending',
        phase: 'incomplete',
        reason: 'TargetMissing',
      },
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
      'the next workers start in place of a worker that is not Ready',
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
      'a node that reports a failure fails, and its rollout fails with it',
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

test.each<[string, Role, Partial<Stage>, string]>([
  ['a failed controller ends the rollout, whatever the budget', 'controller', {}, 'failed'],
  ['a failed worker within the budget does not end the rollout', 'worker', {}, 'running'],
  [
    'a failed controller that keeps its slot does not end the rollout',
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

/** Tests with which reason the signal of a target is cancelled. */
import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { sent } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import { runNameOf } from '../model/failures.ts';
import { because } from '../model/reasons.ts';

test.each<[string, 'DeadlineExceeded' | 'DoneWithFailures', string]>([
  [
    'names a node that was tried again',
    'DeadlineExceeded',
    'worker10 did not report within its deadline',
  ],
  ['is a summary', 'DoneWithFailures', '1 of 3 targets done; failed: worker1, worker10'],
])(
  'a failed node is cancelled for its own reason if the reason of the plan %s',
  (_name, code, message) => {
    const stage = buildStage('worker', [
      buildTarget('worker1', 'failed', { since: later(0) }),
      buildTarget('worker10', 'done'),
    ]);
    const rollout = buildRollout([stage], { phase: 'failed', reason: because(code, message) });
    const snapshot = buildSnapshot(rollout, { worker1: { observation: sent() } });
    const { nodeActions } = decide(snapshot, buildPolicy(), T0 + HOUR);
    expect(nodeActions).toMatchObject([
      { kind: 'cancel', reason: { message: 'worker1 did not report within its deadline' } },
    ]);
  },
);

test('a node that failed because of a health check is cancelled for that, also if the plan was aborted since', () => {
  const rollout = buildRollout([buildStage('worker', [buildTarget('w1', 'failed')])], {
    phase: 'failed',
  });
  const snapshot = withParts(buildSnapshot(rollout, { w1: { observation: sent() } }), {
    plan: { controls: { ...NO_CONTROLS, abort: 'wrong version' } },
    term: {
      failures: {
        run: runNameOf(rollout),
        reasons: { w1: because('NodeNotReady', 'is not Ready') },
      },
    },
  });
  const { nodeActions } = decide(snapshot, buildPolicy(), T0 + HOUR);
  expect(nodeActions).toMatchObject([
    { kind: 'cancel', reason: { code: 'NodeNotReady', message: 'w1: is not Ready' } },
  ]);
});

test.each([
  ['w1', 'w10'],
  ['w1.example', 'w1'],
  ['node', 'w1'],
])(
  'if the reason of the plan is about %s, then %s is cancelled for a reason of its own',
  (one, other) => {
    const targets = [one, other].map((name) => buildTarget(name, 'failed', { since: later(0) }));
    const reason = because('NodeNotReady', `node ${one} is not Ready`);
    const rollout = buildRollout([buildStage('worker', targets)], { phase: 'failed', reason });
    const facts = { observation: sent() };
    const snapshot = buildSnapshot(rollout, { [one]: facts, [other]: facts });
    const { nodeActions } = decide(snapshot, buildPolicy(), T0 + 9 * HOUR);
    expect(
      nodeActions.map((each) => (each.kind === 'cancel' ? each.reason.message : each.kind)),
    ).toEqual([`node ${one} is not Ready`, `${other} did not report within its deadline`]);
  },
);

test('a target is cancelled for the reason of the plan that is about it as data, whatever its words are', () => {
  const targets = ['w1', 'w2'].map((name) => buildTarget(name, 'failed', { since: later(0) }));
  const rollout = buildRollout([buildStage('worker', targets)], {
    phase: 'failed',
    reason: { ...because('TargetFailed', 'w1: 404'), about: ['w2'] },
  });
  const facts = { observation: sent() };
  const { nodeActions } = decide(
    buildSnapshot(rollout, { w1: facts, w2: facts }),
    buildPolicy(),
    T0 + 9 * HOUR,
  );
  expect(
    nodeActions.map((each) => (each.kind === 'cancel' ? each.reason.message : each.kind)),
  ).toEqual(['w1 did not report within its deadline', 'w1: 404']);
});

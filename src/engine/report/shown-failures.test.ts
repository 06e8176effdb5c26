/** Tests which causes of failures commands read from a NodeRollout. */
import { expect, test } from 'vitest';
import { later } from '../../../test/support/clock/times.ts';
import type { NodeRollout, NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { because } from '../model/reasons.ts';
import { causeIn, failuresIn } from './shown-failures.ts';

const COUNTS = { total: 3, done: 0, failed: 3, inProgress: 0, pending: 0, skipped: 0 };

function runOf(id: string, failures?: NodeRolloutRun['failures']): NodeRolloutRun {
  const run = { id, planUid: 'uid', started: later(0), phase: 'failed', counts: COUNTS } as const;
  return failures === undefined ? run : { ...run, failures };
}

function shownWith(status: NodeRollout['status']): NodeRollout {
  const plan = { apiVersion: 'v1', kind: 'Plan', name: 'a', uid: 'uid' };
  return { metadata: { name: 'a' }, spec: { plan }, ...(status === undefined ? {} : { status }) };
}

test('the failures of the asked run are read, and a failure without a message is left out', () => {
  const shown = shownWith({
    history: [
      runOf('run-2', [{ node: 'w9', reason: 'TargetFailed', message: 'another run' }]),
      runOf('run-1', [
        { node: 'w1', reason: 'DeadlineExceeded', message: 'no report for 2 h' },
        { node: 'w2' },
        { node: 'w3', reason: 'OfALaterRelease', message: 'it exploded' },
      ]),
    ],
  });
  expect(failuresIn(shown, 'uid/run-1')).toEqual({
    run: 'uid/run-1',
    reasons: {
      w1: because('DeadlineExceeded', 'no report for 2 h'),
      w3: because('TargetFailed', 'it exploded'),
    },
  });
});

test('a run without failures has none, and of an unknown run nothing is known', () => {
  const shown = shownWith({ history: [runOf('run-1')] });
  expect(failuresIn(shown, 'uid/run-1')).toEqual({ run: 'uid/run-1', reasons: {} });
  expect(failuresIn(shown, 'uid/run-2')).toBeUndefined();
  expect(failuresIn(shownWith({}), 'uid/run-1')).toBeUndefined();
  expect(failuresIn(shownWith(undefined), 'uid/run-1')).toBeUndefined();
  expect(failuresIn(undefined, 'uid/run-1')).toBeUndefined();
});

test('the cause of a failed hook is read from its sentence, with the hook and the policy', () => {
  const message = 'the hook backup of UpgradePolicy careful failed: exit code 1';
  expect(causeIn({ reason: 'TargetFailed', message })).toEqual(
    because('HookFailed', message, { policy: 'careful', hook: 'backup' }),
  );
  expect(causeIn({ reason: 'TargetFailed' })).toBeUndefined();
});

/** Tests what the conditions of a NodeRollout say about waits and about nodes that changed after the end. */
import { expect, test } from 'vitest';
import { working } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import { assess } from '../assess/assess.ts';
import { explain } from '../explain/explain.ts';
import { readPlan } from '../explain/plan-reading.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { statusOf } from './node-rollout-status.ts';

const NOW = T0 + MINUTE;

function statusIn(snapshot: Snapshot): NodeRolloutStatus {
  const assessment = assess(snapshot, buildPolicy(), NOW);
  const reading = readPlan(assessment, { waits: explain(assessment).waits });
  return statusOf({ reading }, undefined, NOW);
}

function messageOf({ conditions = [] }: NodeRolloutStatus, type: string): string | undefined {
  const found = conditions.find((condition) => condition.type === type);
  return found && `${found.status} ${found.message}`;
}

const controllers = buildStage('controller', [buildTarget('c1', 'intended', { since: later(0) })]);
const workers = buildStage('worker', [buildTarget('w1', 'pending', { since: later(0) })]);

test.each([
  [true, 'True the plan is paused: nothing new starts until it is resumed', 'Paused'],
  [
    false,
    'False no target has waited for ten seconds or longer for anything but a free slot or an earlier stage',
    undefined,
  ],
])('workers wait for the controllers, and the plan is paused: %s', (paused, message, waiting) => {
  const snapshot = buildSnapshot(buildRollout([controllers, workers], { phase: 'running' }), {
    c1: { observation: working('Restart') },
  });
  const status = statusIn(
    withParts(snapshot, { plan: { controls: { paused, retries: new Map() } } }),
  );
  expect(messageOf(status, 'Waiting')).toBe(message);
  expect(status.waiting?.reason).toBe(waiting);
});

test('the condition Completed names a node that was deleted after the end', () => {
  const targets = [buildTarget('w1', 'done'), buildTarget('w2', 'done')];
  const snapshot = buildSnapshot(buildRollout([buildStage('worker', targets)], { phase: 'done' }), {
    w2: { exists: false },
  });
  expect(messageOf(statusIn(snapshot), 'Completed')).toBe(
    'True every target is done; since then, w2 was deleted',
  );
});

/** Tests `goneNodes`: what happens at the turn of a worker whose Node was deleted after the plan began. */
import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { Rollout, Stage } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';

const SKIP = buildPolicy({ leavesOutGone: true });
const END = buildPolicy();
const GONE = { n1: { exists: false } };

function snapshotOf(stage: Stage, canSkip = true, more: Partial<Rollout> = {}): Snapshot {
  const rollout = buildRollout([stage], { phase: 'running', ...more });
  return withParts(buildSnapshot(rollout, GONE), { abilities: { canSkip } });
}

const workers = buildStage('worker', [buildTarget('n1'), buildTarget('n2')]);
const controllers = buildStage('controller', [buildTarget('n1'), buildTarget('n2')]);

/** Returns the states of all targets and the code of the reason in the record of the next turn. */
function recordOf(snapshot: Snapshot, policy = SKIP): string {
  const { record = snapshot.rollout } = decide(snapshot, policy, T0);
  const states = record.stages.flatMap(({ targets }) => targets.map(({ state }) => state));
  return [record.phase, ...states, record.reason?.code ?? 'no reason'].join(' ');
}

test('a plan with Skip goes on without a worker whose Node is gone, and no failure is recorded', () => {
  expect(recordOf(snapshotOf(workers))).toBe('running skipped intended no reason');
});

test('a plan with Skip that has upgraded its other workers ends as done, and names the one that is gone', () => {
  const stage = buildStage('worker', [buildTarget('n1', 'skipped'), buildTarget('n2', 'done')]);
  expect(recordOf(snapshotOf(stage))).toBe('done skipped done DoneWithSkipped');
});

test.each<[string, Snapshot, typeof SKIP]>([
  ['by default', snapshotOf(workers), END],
  ['if the worker cannot be recorded as skipped', snapshotOf(workers, false), SKIP],
  ['if the target is a controller', snapshotOf(controllers), SKIP],
])('a target whose Node is gone ends the plan %s', (_name, snapshot, policy) => {
  expect(recordOf(snapshot, policy)).toMatch(/ missing .* TargetMissing$/);
});

test('a plan with Skip that names a missing worker does not start, because the name may be wrong', () => {
  expect(recordOf(snapshotOf(workers, true, { phase: 'new' }))).toBe(
    'incomplete missing pending TargetMissing',
  );
});

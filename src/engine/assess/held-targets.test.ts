/**
 * Tests that a plan continues with other nodes while a node is held, and ends without the held nodes if the policy
 * allows it.
 */

import { describe, expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { Stage } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';

const HELD: Partial<TargetFacts> = { hold: { by: 'ada', reason: 'a long job' } };
const FINISH = buildPolicy({ leavesOutHeld: true });

function snapshotOf(stages: readonly Stage[], facts: Record<string, Partial<TargetFacts>>) {
  return withParts(buildSnapshot(buildRollout(stages), facts), { abilities: { canSkip: true } });
}

function statesAfter(snapshot: Snapshot, policy = buildPolicy(), now = T0): string[] {
  const { stages } = decide(snapshot, policy, now).record ?? snapshot.rollout;
  return stages.flatMap(({ targets }) => targets.map(({ name, state }) => `${name} ${state}`));
}

describe('the plan goes on past a held node', () => {
  test('with the workers behind a held worker', () => {
    const snapshot = snapshotOf([buildStage('worker', ['w1', 'w2'])], { w1: HELD });
    expect(statesAfter(snapshot)).toEqual(['w1 pending', 'w2 intended']);
  });

  test('with the controllers behind a held controller that is healthy', () => {
    const snapshot = snapshotOf([buildStage('controller', ['c1', 'c2'])], { c1: HELD });
    expect(statesAfter(snapshot)).toEqual(['c1 pending', 'c2 intended']);
  });

  test('but not with a controller behind a held controller that is not Ready', () => {
    const facts = { c1: HELD, c2: { ready: false } };
    const snapshot = snapshotOf([buildStage('controller', ['c1', 'c2', 'c3'])], facts);
    expect(statesAfter(snapshot)).toEqual(['c1 pending', 'c2 pending', 'c3 pending']);
  });

  test('with the next group of the order of its policy', () => {
    const policy = buildPolicy({ name: 'zones', order: ['zone'] });
    const facts = { w1: { ...HELD, labels: { zone: 'a' } }, w2: { labels: { zone: 'b' } } };
    const snapshot = snapshotOf([buildStage('worker', ['w1', 'w2'])], facts);
    expect(statesAfter(snapshot, policy)).toEqual(['w1 pending', 'w2 intended']);
  });

  test('and the wait names the hold and the command that ends it', () => {
    const snapshot = snapshotOf([buildStage('worker', ['w1'])], { w1: HELD });
    expect(decide(snapshot, buildPolicy(), T0).waits).toEqual([
      expect.objectContaining({
        gate: 'not-held',
        reason: { code: 'Held', message: 'w1 is held by ada: a long job' },
        ends: 'somebody runs refit unhold w1',
      }),
    ]);
  });
});

describe('the end of a plan with held nodes', () => {
  const workers = buildStage('worker', [buildTarget('w1', 'done'), buildTarget('w2')]);

  test('waits for the hold by default', () => {
    const snapshot = snapshotOf([workers], { w2: HELD });
    expect(decide(snapshot, buildPolicy(), T0).record?.phase).not.toBe('done');
  });

  test('comes without the held nodes, which are named, if the policy says so', () => {
    const { record } = decide(snapshotOf([workers], { w2: HELD }), FINISH, T0);
    expect([record?.phase, record?.reason]).toEqual([
      'done',
      { code: 'DoneWithSkipped', message: '1 of 2 targets done; skipped: w2' },
    ]);
  });

  test('waits while another worker is at work, or waits for something else', () => {
    const busy = buildStage('worker', [buildTarget('w1', 'intended'), buildTarget('w2')]);
    expect(statesAfter(snapshotOf([busy], { w2: HELD }), FINISH)).not.toContain('w2 skipped');
    const sick = buildStage('worker', ['w1', 'w2']);
    const facts = { w1: { ready: false }, w2: HELD };
    expect(statesAfter(snapshotOf([sick], facts), FINISH)).not.toContain('w2 skipped');
  });

  test('never leaves out a controller, so that no worker starts before it', () => {
    const stages = [buildStage('controller', ['c1']), buildStage('worker', ['w1'])];
    expect(statesAfter(snapshotOf(stages, { c1: HELD }), FINISH)).toEqual([
      'c1 pending',
      'w1 pending',
    ]);
  });

  test('waits where the record cannot keep that a target was skipped', () => {
    const snapshot = withParts(snapshotOf([workers], { w2: HELD }), {
      abilities: { canSkip: false },
    });
    expect(statesAfter(snapshot, FINISH)).toEqual(['w1 done', 'w2 pending']);
  });

  test('does not come while the plan is paused', () => {
    const controls = { paused: true, retries: new Map() };
    const snapshot = withParts(snapshotOf([workers], { w2: HELD }), { plan: { controls } });
    expect(statesAfter(snapshot, FINISH)).toEqual(['w1 done', 'w2 pending']);
  });

  test('a node that is held after it was chosen gives its slot back', () => {
    const chosen = buildStage('worker', [buildTarget('w1', 'intended'), buildTarget('w2')]);
    const snapshot = snapshotOf([chosen], { w1: HELD });
    expect(statesAfter(snapshot)).toEqual(['w1 pending', 'w2 intended']);
  });

  test('a hold that ends by itself lets the node start', () => {
    const facts = { w2: { hold: { until: later(MINUTE) } } };
    const snapshot = snapshotOf([workers], facts);
    expect(decide(snapshot, buildPolicy(), T0).recheckAfterMs).toBe(MINUTE);
    expect(statesAfter(snapshot, buildPolicy(), T0 + MINUTE)).toContain('w2 intended');
  });
});

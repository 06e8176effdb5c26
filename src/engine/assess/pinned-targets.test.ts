/**
 * Tests pinned nodes: the plan continues with other nodes, ends without the pinned nodes if the policy allows it, and
 * does not apply its rules to them.
 */

import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { pinAgainst } from '../gates/pins.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { Stage } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Pin, RolloutPolicy } from '../policy/rollout-policy.ts';
import { versionVerdict } from './advance.ts';

const GPU = { labels: { gpu: 'true' } };
const PIN: Pin = { selector: { matchLabels: { gpu: 'true' } }, version: 'v1.30.2+build.1' };
const VERSION = 'v1.31.0+build.1';
const PINNED = buildPolicy({ name: 'prod', pins: [PIN] });

function snapshotOf(stage: Stage, facts: Record<string, Partial<TargetFacts>>): Snapshot {
  const rollout = buildRollout([{ ...stage, version: VERSION }], { phase: 'running' });
  return withParts(buildSnapshot(rollout, facts), { abilities: { canSkip: true } });
}

function statesAfter(snapshot: Snapshot, policy: RolloutPolicy): string[] {
  const { stages } = decide(snapshot, policy, T0).record ?? snapshot.rollout;
  return stages.flatMap(({ targets }) => targets.map(({ name, state }) => `${name} ${state}`));
}

test.each<[string, string, string, boolean]>([
  ['the same version', 'v1.31.0+build.1', 'v1.31.0+build.1', true],
  ['another build', 'v1.31.0+build.1', 'v1.31.0+build.2', false],
  ['any build of a pin without one', 'v1.31.0', 'v1.31.0+build.1', true],
  ['any build, written as the tag of an image', 'v1.31.0', 'v1.31.0-k3s1', true],
  ['the tag of an image', 'v1.31.0+k3s1', 'v1.31.0-k3s1', true],
  ['a pre-release', 'v1.31.0', 'v1.31.0-rc.1+build.1', false],
  ['another patch', 'v1.31.0', 'v1.31.1', false],
  ['a version that cannot be read', 'v1.31.0', 'latest', false],
])(
  'whether a pin allows %s is decided by its version and its build',
  (_name, version, wanted, expected) => {
    const policy = { pins: [{ ...PIN, version }] };
    const stage = { ...buildStage('worker', ['w1']), version: wanted };
    expect(pinAgainst(policy, stage, GPU) === undefined).toBe(expected);
  },
);

test('a pin holds back neither a stage that changes no version nor a node without its labels', () => {
  const stage = buildStage('worker', ['w1'], { version: VERSION });
  expect(pinAgainst(PINNED, { ...stage, keepsVersion: true }, GPU)).toBeUndefined();
  expect(pinAgainst(PINNED, stage, { labels: {} })).toBeUndefined();
});

test('a plan with a pinned node goes on with the others, and the wait of that node says what ends it', () => {
  const snapshot = snapshotOf(buildStage('worker', ['w1', 'w2']), { w1: GPU });
  expect(statesAfter(snapshot, PINNED)).toEqual(['w1 pending', 'w2 intended']);
  const alone = snapshotOf(buildStage('worker', ['w1']), { w1: GPU });
  expect(decide(alone, PINNED, T0).waits).toMatchObject([
    {
      gate: 'not-pinned',
      reason: { code: 'Pinned' },
      ends: `the pin of UpgradePolicy prod is removed or allows ${VERSION}`,
    },
  ]);
});

test('a plan ends without its pinned workers if the policy has holds: Finish, and otherwise waits', () => {
  const snapshot = snapshotOf(buildStage('worker', [buildTarget('w2', 'done'), 'w1']), { w1: GPU });
  expect(statesAfter(snapshot, PINNED)).toEqual(['w2 done', 'w1 pending']);
  const finish = { ...PINNED, leavesOutHeld: true };
  expect(statesAfter(snapshot, finish)).toEqual(['w2 done', 'w1 skipped']);
  const conflict = { ...finish, pins: [PIN, { ...PIN, version: VERSION }] };
  expect(statesAfter(snapshot, conflict)).toEqual(['w2 done', 'w1 pending']);
});

test('a plan waits for its pinned controller', () => {
  const snapshot = snapshotOf(buildStage('controller', [buildTarget('c2', 'done'), 'c1']), {
    c1: GPU,
  });
  expect(statesAfter(snapshot, { ...PINNED, leavesOutHeld: true })).toEqual([
    'c2 done',
    'c1 pending',
  ]);
});

test('a pinned node whose intent was not signalled yet gives its slot back', () => {
  const snapshot = snapshotOf(buildStage('worker', [buildTarget('w1', 'intended')]), { w1: GPU });
  expect(statesAfter(snapshot, PINNED)).toEqual(['w1 pending']);
});

test('the next group of the order does not wait for a pinned worker', () => {
  const policy = { ...PINNED, order: ['first=true'] };
  const facts = { w1: { labels: { gpu: 'true', first: 'true' } } };
  const snapshot = snapshotOf(buildStage('worker', ['w1', 'w2']), facts);
  expect(statesAfter(snapshot, policy)).toEqual(['w1 pending', 'w2 intended']);
});

test('a version rule does not refuse the plan because of a pinned node', () => {
  const facts = { w1: { ...GPU, version: 'v1.28.0+build.1' } };
  const apiServers = [{ name: 'c1', version: VERSION }];
  const snapshot = withParts(snapshotOf(buildStage('worker', ['w1', 'w2']), facts), {
    cluster: { apiServers },
  });
  expect(versionVerdict(snapshot, buildPolicy()).problems).toHaveLength(1);
  expect(versionVerdict(snapshot, PINNED).problems).toEqual([]);
  const started = withParts(
    snapshotOf(buildStage('worker', ['w2', 'w1']), {
      ...facts,
      w2: { version: 'v1.31.0+build.1' },
    }),
    { cluster: { apiServers } },
  );
  expect(statesAfter(started, PINNED)).toEqual(['w2 intended', 'w1 pending']);
});

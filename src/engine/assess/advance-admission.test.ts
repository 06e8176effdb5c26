/** Tests the first decision: a rollout is started as a whole, or is refused with all reasons. */

import { describe, expect, test } from 'vitest';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { answered, NEVER, UNASKED, unanswered } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { admit, refusalsOf } from './advance.ts';

const stages = [buildStage('controller', ['c1', 'c2']), buildStage('worker', ['w1', 'w2'])];
const HTTP = { 'linux-amd64': { url: 'http://example.com/file' } };
const NEW = buildRollout(stages, { phase: 'new' });

function admitted(
  facts: Record<string, Partial<TargetFacts>> = {},
  rollout: Rollout = NEW,
): Rollout {
  return admit({
    snapshot: buildSnapshot(rollout, facts),
    policy: buildPolicy(),
    now: T0 + MINUTE,
  });
}

function statesOf(rollout: Rollout): object {
  const targets = rollout.stages.flatMap((stage) => stage.targets);
  return Object.fromEntries(targets.map(({ name, state }) => [name, state]));
}

test('a rollout whose targets all exist and have a platform runs', () => {
  expect(admitted()).toEqual({ ...NEW, phase: 'running' });
});

test('admission does not ask for health, which may still improve', () => {
  expect(admitted({ w1: { ready: false } }).phase).toBe('running');
});

test('a plan that includes an excluded target is refused, and no target changes', () => {
  const agent = { ours: true, title: 'Refit 1', excluded: true } as const;
  expect(admitted({ w1: { agent }, w2: { agent } })).toEqual({
    ...NEW,
    phase: 'invalid',
    reason: because(
      'Excluded',
      'w1 is a worker that the agent of w1 excludes from plans by --exclude-from-plans; w2 is a worker that the agent of w2 excludes from plans by --exclude-from-plans',
    ),
  });
});

test('if a target is missing too, the plan is incomplete, and the excluded target does not change', () => {
  const agent = { ours: true, title: 'Refit 1', excluded: true } as const;
  const refused = admitted({ w1: { agent }, w2: { exists: false } });
  expect(refused).toMatchObject({ phase: 'incomplete', reason: { code: 'TargetMissing' } });
  expect(statesOf(refused)).toMatchObject({ w1: 'pending', w2: 'missing' });
});

test('a rollout without targets starts, and ends with the next move', () => {
  expect(admitted({}, buildRollout([], { phase: 'new' })).phase).toBe('running');
});

test.each<[string, SnapshotChanges]>([
  ['its preconditions are not asked', { plan: { preconditions: UNASKED } }],
  [
    'its preconditions got no answer',
    { plan: { preconditions: unanswered({ reason: because('CannotDecide', 'x'), recheckMs: 1 }) } },
  ],
])('nothing is decided about a new rollout while %s', (_why, more) => {
  const snapshot = withParts(buildSnapshot(NEW), more);
  expect(admit({ snapshot, policy: buildPolicy(), now: T0 })).toBe(NEW);
});

test('nothing is decided about a new rollout while its policy cannot be read', () => {
  const policy = buildPolicy({ problems: [because('PolicyUnreadable', 'spec.soak')] });
  expect(admit({ snapshot: buildSnapshot(NEW), policy, now: T0 })).toBe(NEW);
});

test('a new rollout runs once its preconditions are met', () => {
  const snapshot: Snapshot = withParts(buildSnapshot(NEW), {
    plan: { preconditions: answered([]) },
  });
  expect(admit({ snapshot, policy: buildPolicy(), now: T0 }).phase).toBe('running');
});

test.each<[string, SnapshotChanges, Parameters<typeof buildPolicy>[0], object]>([
  [
    'all preconditions that are not met',
    {
      plan: {
        preconditions: answered([
          because('InvalidPlan', 'no etcd'),
          because('InvalidPlan', 'no quorum'),
        ]),
      },
    },
    {},
    { code: 'InvalidPlan', message: 'no etcd; no quorum' },
  ],
  [
    'a download that the policy forbids',
    { rollout: buildRollout([buildStage('worker', ['w1'], { payloads: HTTP })], { phase: 'new' }) },
    { requireHttps: true },
    { code: 'Unverified', message: expect.stringContaining('comes over plain http') as string },
  ],
  [
    'a version that an API server would be behind',
    { cluster: { apiServers: [{ name: 'c9', version: 'v1.30.1' }] } },
    {},
    { code: 'KubeletAhead', message: expect.stringContaining('c9') as string },
  ],
])('a plan is refused for %s', (_name, more, policy, reason) => {
  const snapshot = withParts(buildSnapshot(more.rollout ?? NEW), more);
  const { stages: _, ...refused } = admit({ snapshot, policy: buildPolicy(policy), now: T0 });
  expect(refused).toMatchObject({ phase: 'invalid', reason });
});

test('until the record of the earlier run is read, a plan that goes back breaks no version rule', () => {
  const going = buildRollout([buildStage('controller', ['c1'])], { rollsBack: 'uid/id0' });
  const newer = { c1: { version: 'v1.36.4+x.0' } };
  const refusals = (decisions: Snapshot['plan']['decisions']) =>
    refusalsOf({
      snapshot: withParts(buildSnapshot(going, newer), {
        cluster: { apiServers: [{ name: 'c1', version: 'v1.36.4+x.0' }] },
        plan: { decisions },
      }),
      policy: buildPolicy(),
      now: T0,
    }).map(({ code }) => code);
  expect(refusals(UNASKED)).toEqual([]);
  expect(refusals(NEVER)).toEqual(['Downgrade']);
});

test('an abort needs neither an answer nor a policy that can be read', () => {
  const controls = { ...NO_CONTROLS, abort: 'wrong version' };
  const snapshot: Snapshot = withParts(buildSnapshot(NEW), {
    plan: { controls, preconditions: UNASKED },
  });
  const policy = buildPolicy({ problems: [because('PolicyUnreadable', 'spec.soak')] });
  expect(admit({ snapshot, policy, now: T0 })).toMatchObject({
    phase: 'failed',
    reason: { code: 'Aborted' },
  });
});

describe('refused', () => {
  test('Refit reports all refused targets at once and records their states; the others stay pending', () => {
    const rollout = admitted({
      c2: { exists: false },
      w1: { platform: 'windows-amd64' },
      w2: { platform: undefined },
    });
    expect(rollout.phase).toBe('incomplete');
    expect(rollout.reason).toEqual({
      code: 'TargetMissing',
      message:
        'c2 does not exist as a controller; w1 is windows-amd64; the plan has downloads for linux-amd64: add the platform of the node to the plan, or leave the node out; w2 needs the labels kubernetes.io/os and kubernetes.io/arch, and lacks at least one of them: set them, or leave the node out of the plan',
    });
    expect(statesOf(rollout)).toEqual({
      c1: 'pending',
      c2: 'missing',
      w1: 'unsupported',
      w2: 'unsupported',
    });
  });

  test('the targets that are refused have their state since now, and the others keep their time', () => {
    const [c1, c2] = admitted({ c2: { exists: false } }).stages[0]?.targets ?? [];
    expect([c1?.since, c2?.since]).toEqual([later(0), later(MINUTE)]);
  });

  test('a thousand reasons are cut to what a person reads', () => {
    const names = Array.from({ length: 1000 }, (_, index) => `w${index}`);
    const rollout = buildRollout([buildStage('worker', names)], { phase: 'new' });
    const facts = Object.fromEntries(names.map((name) => [name, { exists: false }]));
    const after = admitted(facts, rollout);
    expect(after.reason?.message.slice(0, 200)).toBe(
      'w0 does not exist as a worker; the same holds for w1, w2, w3, w4, w5 and 994 more',
    );
    expect(Object.values(statesOf(after)).every((state) => state === 'missing')).toBe(true);
  });

  test('a plan with problems is refused for them alone, before any target is judged', () => {
    const problems = [
      { code: 'InvalidPlan', message: 'spec.id must name this run' },
      { code: 'InvalidPlan', message: 'spec.commands must hold a command' },
    ] as const;
    const rollout = admitted({ c2: { exists: false } }, { ...NEW, problems });
    expect(rollout.phase).toBe('invalid');
    expect(rollout.reason).toEqual({
      code: 'InvalidPlan',
      message: 'spec.id must name this run; spec.commands must hold a command',
    });
    expect(statesOf(rollout)).toEqual({
      c1: 'pending',
      c2: 'pending',
      w1: 'pending',
      w2: 'pending',
    });
  });
});

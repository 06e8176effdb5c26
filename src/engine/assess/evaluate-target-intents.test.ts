/** Tests what happens to a recorded intent before its signal: it is signalled, waits, keeps or loses its slot. */
import { describe, expect, test } from 'vitest';
import { buildHook } from '../../../test/support/builders/hooks.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Hook, HookMoment } from '../../hooks/rules.ts';
import { withClaim } from '../../signal/at-work.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { NodeView } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { assess } from './assess.ts';

const OURS = 'table//m/uid-m';
const LATER = 'table//z/uid-z';
const LATEST = 'table//zz/uid-zz';
const EARLIER = 'table//a/uid-a';
const NODE: NodeView = {
  name: 'n1',
  unschedulable: false,
  cordonOwner: undefined,
  taintOwner: undefined,
};
const CLAIMED: NodeView = { ...NODE, claim: OURS };
const ONE_AWAY: Partial<RolloutPolicy> = { name: 'one', maxUnavailable: { nodes: 1 } };

interface Scene {
  readonly target?: Partial<Target>;
  readonly facts?: KnownFacts;
  readonly parts?: SnapshotChanges;
  readonly policy?: Partial<RolloutPolicy>;
  readonly now?: number;
}

/** Returns the evaluation of the intended worker n1 of a plan with the claim OURS. */
function intentOf({ target: more, facts = {}, parts, policy = {}, now = T0 }: Scene) {
  const target = buildTarget('n1', 'intended', more);
  const base = buildSnapshot(buildRollout([buildStage('worker', [target])]), { n1: facts });
  const snapshot = withParts(base, { plan: { claim: OURS } }, parts);
  const [stage] = snapshot.rollout.stages;
  const [intended] = stage?.targets ?? [];
  if (!stage || !intended) throw new Error('the plan has one target');
  return assess(snapshot, buildPolicy(policy), now).of(stage, intended);
}

describe('the limit of unavailable nodes', () => {
  /** Returns the parts of a snapshot with the Nodes n1 and n2 and others, which have these claims. n1 has OURS. */
  const claims = (...others: readonly string[]): SnapshotChanges => ({
    cluster: {
      fleet: [
        withClaim(buildNode('n1'), OURS),
        buildNode('free'),
        ...others.map((claim, index) => withClaim(buildNode(`n${index + 2}`), claim)),
      ],
    },
  });
  const facts = { node: CLAIMED, claimNeed: 'with-limit', followedMs: 0 } as const;
  const limited = { facts, policy: ONE_AWAY };

  test('an intent keeps its claim while only plans with later claims exceed the limit', () => {
    const scene = { ...limited, parts: claims(LATER) };
    expect(intentOf(scene)).toMatchObject({ gate: 'nodes-available', recheckMs: MINUTE });
    expect(intentOf(scene).next).toBeUndefined();
  });

  test('an intent loses its claim to a plan with an earlier claim at once', () => {
    const scene = { ...limited, parts: claims(EARLIER) };
    expect(intentOf(scene)).toMatchObject({ gate: 'nodes-available', next: 'pending' });
  });

  test('an intent loses its claim to a node that is not Ready at once, also if a later plan claims it', () => {
    const fleet = [
      withClaim(buildNode('n1'), OURS),
      withClaim(buildNode('n2', {}, 'False'), LATER),
    ];
    expect(intentOf({ ...limited, parts: { cluster: { fleet } } })).toMatchObject({
      next: 'pending',
    });
  });

  test.each([
    ['one later plan', [LATER], MINUTE],
    ['one later plan with two nodes', [LATER, LATER], MINUTE],
    ['two later plans', [LATER, LATEST], 2 * MINUTE],
  ])('%s get a minute each to remove their claims first', (_title, others, limitMs) => {
    const at = (followedMs: number) =>
      intentOf({ facts: { ...facts, followedMs }, policy: ONE_AWAY, parts: claims(...others) });
    expect(at(limitMs).next).toBeUndefined();
    expect(at(limitMs + 1)).toMatchObject({ next: 'pending' });
  });

  test('a process that does not follow the target lets the intent keep its claim', () => {
    const unfollowed = { node: CLAIMED, claimNeed: 'with-limit' } as const;
    expect(intentOf({ ...limited, facts: unfollowed, parts: claims(LATER) }).next).toBeUndefined();
  });

  test.each([
    ['later', LATER, undefined],
    ['earlier', EARLIER, 'pending'],
  ])(
    'the limit of a domain holds in the same way for a plan with a %s claim',
    (_title, claim, next) => {
      const zone = { labels: { zone: 'a' } };
      const fleet = [
        withClaim(buildNode('n1', zone), OURS),
        withClaim(buildNode('n2', zone), claim),
      ];
      const policy = { name: 'zones', perDomain: { label: 'zone', limit: { nodes: 1 } } };
      const found = intentOf({
        facts: { ...facts, ...zone },
        policy,
        parts: { cluster: { fleet } },
      });
      expect(found).toMatchObject({ gate: 'domain-available' });
      expect(found.next).toBe(next);
    },
  );

  test('an intent without a claim on its node keeps its slot, and is not looked at again by itself', () => {
    const unclaimed = { ...facts, node: NODE };
    const found = intentOf({ facts: unclaimed, policy: ONE_AWAY, parts: claims(EARLIER) });
    expect([found.next, found.recheckMs]).toEqual([undefined, undefined]);
  });
});

describe('an intent that another gate holds back', () => {
  const paused = { policy: { name: 'nightly', paused: true } };

  test.each<[string, KnownFacts, SnapshotChanges | undefined, string | undefined]>([
    ['has no claim', { node: NODE }, undefined, undefined],
    ['has its claim', { node: CLAIMED }, undefined, 'pending'],
    [
      'has its claim on a cordoned node',
      { node: { ...CLAIMED, unschedulable: true } },
      undefined,
      undefined,
    ],
    ['has no Node', {}, undefined, undefined],
    ['is of a plan without claims', { node: NODE }, { plan: { claim: undefined } }, undefined],
    [
      'has an empty claim of a plan without claims',
      { node: { ...NODE, claim: '' } },
      { plan: { claim: undefined } },
      'pending',
    ],
  ])(
    'loses its slot only with a claim on a node that is not cordoned: it %s',
    (_title, facts, parts, next) => {
      expect(intentOf({ ...paused, facts, ...(parts && { parts }) }).next).toBe(next);
    },
  );

  test('keeps its slot and its claim if the API server refused its write', () => {
    const refusal = { reason: because('TargetRefused', 'a webhook says no'), recheckMs: 5000 };
    const found = intentOf({ facts: { node: CLAIMED, refusal } });
    expect(found).toMatchObject({ gate: 'write', recheckMs: 5000 });
    expect(found.next).toBeUndefined();
  });

  test('keeps its slot and its claim while an answer is asked for', () => {
    const drain = { ...buildPolicy().drain, waitsForBudgets: true };
    const facts: KnownFacts = {
      node: CLAIMED,
      drainDelegation: { kind: 'answered', answer: true },
      drainPreview: { kind: 'unasked' },
    };
    const found = intentOf({ facts, policy: { drain } });
    expect(found.probe).toBeDefined();
    expect(found.next).toBeUndefined();
  });

  test('gives its slot back if somebody holds its node or another tool works on it', () => {
    const hold = { by: 'ann', reason: 'disk' };
    expect(intentOf({ facts: { hold } })).toMatchObject({ gate: 'not-held', next: 'pending' });
    const otherWork = [{ tool: 'Kured', message: 'Kured reboots it', ends: 'it is done' }] as const;
    const coordinate = ['Kured'] as const;
    expect(intentOf({ facts: { otherWork }, policy: { coordinate } })).toMatchObject({
      gate: 'others-at-work',
      next: 'pending',
    });
  });
});

describe('an intent that the gates let start', () => {
  const NEEDS = { node: CLAIMED, claimNeed: 'always' } as const;

  test('is signalled', () => {
    expect(intentOf({ facts: NEEDS })).toEqual({
      phase: 'intended',
      effect: 'signal',
      reason: { code: 'Intended', message: 'n1 is about to be signalled' },
    });
  });

  test.each<[string, KnownFacts]>([
    ['no claim', { ...NEEDS, node: NODE }],
    ['the claim of another plan', { ...NEEDS, node: { ...NODE, claim: LATER } }],
    [
      'its claim on a Node whose last write the watch does not show',
      { ...NEEDS, isNodeOutdated: true },
    ],
  ])('is looked at again after a second while its node has %s', (_title, facts) => {
    expect(intentOf({ facts })).toEqual({
      phase: 'intended',
      effect: 'none',
      reason: { code: 'Intended', message: 'n1 is about to be signalled' },
      recheckMs: 1000,
    });
  });

  test.each<[string, KnownFacts, Partial<RolloutPolicy>, 'none' | 'signal']>([
    ['never', { node: NODE }, ONE_AWAY, 'signal'],
    ['with a limit, and there is none', { node: NODE, claimNeed: 'with-limit' }, {}, 'signal'],
    ['with a limit, of nodes', { node: NODE, claimNeed: 'with-limit' }, ONE_AWAY, 'none'],
    [
      'with a limit, of domains',
      { node: NODE, claimNeed: 'with-limit' },
      { perDomain: { label: 'zone', limit: { nodes: 1 } } },
      'none',
    ],
    ['always, but the target has no Node', { claimNeed: 'always' }, {}, 'signal'],
  ])('a node without a claim needs it %s', (_title, facts, policy, effect) => {
    expect(intentOf({ facts, policy }).effect).toBe(effect);
  });

  const hookOf = (when: HookMoment): Hook => buildHook('backup', when, { timeoutMs: 3 * MINUTE });

  test.each<[string, Partial<RolloutPolicy>, number]>([
    ['a minute', {}, MINUTE],
    ['the deadline of the target, if that is shorter', { targetDeadlineMs: 20_000 }, 20_000],
    ['a second at least', { targetDeadlineMs: 1 }, 1000],
    ['the time of hooks before the drain more', { hooks: [hookOf('beforeDrain')] }, 4 * MINUTE],
    ['no time of hooks before the restart', { hooks: [hookOf('beforeRestart')] }, MINUTE],
    [
      'the time of hooks before the restart, if they run before work that nothing holds',
      {
        hooks: [hookOf('beforeRestart')],
        drain: { ...buildPolicy().drain, unheld: 'withoutDrain' },
      },
      4 * MINUTE,
    ],
  ])('is recorded again after %s', (_title, policy, freshMs) => {
    // An earlier process has begun the work, so that no hook keeps the target from its signal.
    const facts: KnownFacts = { observation: { kind: 'none', begun: true } };
    const at = (now: number) => intentOf({ facts, policy, now: T0 + now });
    expect(at(freshMs - 1)).toMatchObject({ effect: 'signal' });
    expect(at(freshMs)).toMatchObject({ effect: 'none', next: 'intended' });
  });

  test('is recorded again if its attempt has no time', () => {
    expect(intentOf({ target: { lacksAttempt: true } })).toMatchObject({ next: 'intended' });
  });
});

test('an aborted plan takes back its intent, unless the work on the node has begun', () => {
  const parts = { plan: { controls: { ...NO_CONTROLS, abort: 'ann' } } };
  expect(intentOf({ parts })).toEqual({
    phase: 'intended',
    effect: 'none',
    next: 'pending',
    reason: { code: 'Aborted', message: 'n1 was not started' },
  });
  expect(intentOf({ parts, facts: { observation: { kind: 'none', begun: true } } }).effect).toBe(
    'signal',
  );
});

test('an intent of a plan that is now invalid waits for its correction', () => {
  const target = buildTarget('n1', 'intended', { since: later(0) });
  const problem = because('InvalidPlan', 'the plan has no version');
  const rollout = buildRollout([buildStage('worker', [target])], { problems: [problem] });
  const [stage] = rollout.stages;
  const [intended] = stage?.targets ?? [];
  const found =
    stage && intended && assess(buildSnapshot(rollout), buildPolicy(), T0).of(stage, intended);
  expect(found).toEqual({
    phase: 'intended',
    effect: 'none',
    reason: problem,
    ends: 'the plan is corrected',
    gate: 'plan-valid',
  });
});

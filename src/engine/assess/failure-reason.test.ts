/** Tests what the failure of a late target says: the cause that the leader waited for, or the node alone. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import { AFTER_TARGET, BEFORE_WORK } from '../gates/registry.ts';
import { type Gate, wait } from '../gates/types.ts';
import { answered, NEVER, UNASKED, unanswered } from '../model/asked.ts';
import type { Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { Role } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { assess } from './assess.ts';

const NODE = { name: 'n1', unschedulable: true, cordonOwner: undefined, taintOwner: undefined };

const asking = (waitsFor: 'drain' | 'uncordon'): Observation => ({
  kind: 'working',
  step: waitsFor === 'drain' ? 'Cordoning' : 'UnCordoning',
  part: waitsFor === 'drain' ? 'drain' : 'ready',
  attempt: later(0),
  since: later(0),
  waitsFor,
});

const DRAINED: KnownFacts = { observation: asking('drain'), drain: { kind: 'drained', since: T0 } };
const UNCORDONING: KnownFacts = { observation: asking('uncordon') };

interface Scene {
  readonly role?: Role;
  readonly policy?: Partial<RolloutPolicy>;
  readonly parts?: SnapshotChanges;
}

/** Evaluates a target that has missed all of its deadlines. */
function lateTarget(facts: KnownFacts, { role = 'worker', policy, parts }: Scene = {}) {
  const stage = buildStage(role, [buildTarget('n1', 'intended')]);
  const known = { drainDelegation: answered(true), node: NODE, watchedMs: 9 * HOUR, ...facts };
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), { n1: known }), parts);
  const [target = buildTarget('n1')] = stage.targets;
  return assess(snapshot, buildPolicy(policy), T0 + 9 * HOUR).of(stage, target);
}

function said(facts: KnownFacts, scene?: Scene): string {
  const { next, reason } = lateTarget(facts, scene);
  return `${next} ${reason.code}: ${reason.message}`;
}

/** Adds a gate to the list that never passes, for the time of this test. */
function addShutGate(list: readonly Gate[]): void {
  const shut: Gate = {
    name: 'shut',
    evaluate: () => wait('ForeignWork', 'the gate is shut', 'somebody opens it'),
  };
  (list as Gate[]).push(shut);
  onTestFinished(() => void (list as Gate[]).splice(list.indexOf(shut), 1));
}

describe('a target that is late while it waits for its uncordon', () => {
  test('fails for the reason of the verifier that does not pass, whichever that is', () => {
    addShutGate(AFTER_TARGET);
    expect(said(UNCORDONING)).toBe(
      'failed UncordonTooLong: n1 was not uncordoned within its deadline: the gate is shut',
    );
  });

  const stopped = {
    name: 'kube-controller-manager',
    state: 'stopped',
    silentMs: 60_000,
    renewedAt: T0,
  } as const;

  test.each<[string, KnownFacts, SnapshotChanges, string]>([
    [
      'a component that does not work',
      {},
      { cluster: { components: answered({ states: [stopped] }), controlPlane: NEVER } },
      'UncordonTooLong: n1 was not uncordoned within its deadline: kube-controller-manager does not work: nobody has renewed its Lease kube-system/kube-controller-manager for 1 min',
    ],
    [
      'an API server that is not ready',
      {},
      { cluster: { controlPlane: answered([{ name: 'n2', ready: false, detail: '503' }]) } },
      'UncordonTooLong: n1 was not uncordoned within its deadline: the API server of n2 (503) is not ready',
    ],
    [
      'API servers that cannot be asked',
      {},
      {
        cluster: {
          controlPlane: unanswered({
            reason: because('ControlPlaneUnknown', 'no route to n2'),
            recheckMs: 1,
          }),
        },
      },
      'UncordonTooLong: n1 was not uncordoned within its deadline: no route to n2',
    ],
    [
      'a node that is not Ready',
      { ready: false },
      { cluster: { controlPlane: NEVER } },
      'UncordonTooLong: n1 was not uncordoned within its deadline: node n1 is not Ready',
    ],
  ])('names %s', (_title, facts, parts, expected) => {
    const found = said({ ...UNCORDONING, ...facts }, { role: 'controller', parts });
    expect(found).toBe(`failed ${expected}`);
  });

  test('asks the API servers before it fails because of them', () => {
    const { next, probe } = lateTarget(UNCORDONING, {
      role: 'controller',
      parts: { cluster: { controlPlane: UNASKED } },
    });
    expect(next).toBeUndefined();
    expect(probe).toEqual({ kind: 'control-plane' });
  });

  test('fails for its deadline alone if every verifier passes', () => {
    expect(said(UNCORDONING)).toBe(
      'failed DeadlineExceeded: n1 was not done within its deadline, at UnCordoning',
    );
  });
});

describe('a target that is late while it waits for its drain', () => {
  const late = 'failed DeadlineExceeded: n1 was not done within its deadline, at Cordoning';

  test('names what the gate after the drain waits for', () => {
    addShutGate(BEFORE_WORK);
    expect(said(DRAINED)).toBe(`${late}: the gate is shut`);
  });

  test.each<[string, KnownFacts, Scene, string]>([
    [
      'the policy that pauses it',
      DRAINED,
      { policy: { heldBy: 'UpgradePolicy night' } },
      'UpgradePolicy night is paused: n1 is not drained',
    ],
    [
      'why nobody knows whether it drains itself',
      {
        ...DRAINED,
        drainDelegation: unanswered({
          reason: because('DrainDelegationUnknown', 'the agent of n1 gave no answer'),
          recheckMs: 1,
        }),
      },
      {},
      'the agent of n1 gave no answer',
    ],
    [
      'the pods that are left',
      {
        ...DRAINED,
        drain: { kind: 'draining', since: T0, left: 2, blockedBy: 'default/web blocks web-1' },
      },
      { policy: { drain: { ...buildPolicy().drain, onDeadline: 'wait' } } },
      '2 pods are left on node n1: default/web blocks web-1',
    ],
  ])('names %s', (_title, facts, scene, expected) => {
    expect(said(facts, scene)).toBe(`${late}: ${expected}`);
  });

  test('fails for its drain if it drains itself', () => {
    expect(said({ ...DRAINED, drainDelegation: answered(false) })).toBe(
      'failed DrainTooLong: n1, which drains itself, was not drained within its deadline',
    );
  });
});

test('a target that is late at a step says why the step made no progress', () => {
  const observation = {
    kind: 'working',
    step: 'Starting',
    attempt: later(0),
    since: later(0),
    stalled: 'image registry.example/suc:1 cannot be pulled',
  } as const;
  expect(said({ observation })).toBe(
    'failed DeadlineExceeded: n1 did not report within its deadline at Starting: image registry.example/suc:1 cannot be pulled',
  );
});

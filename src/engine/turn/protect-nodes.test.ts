/** Tests which marks for other tools a node gets before and during its upgrade, and which Nodes a plan must claim. */
import { describe, expect, test } from 'vitest';
import { NONE, sent, succeeded, working } from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { MarkState } from '../../coordination/node-marks.ts';
import { assess } from '../assess/assess.ts';
import type { NodeView, Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { areClaimsDue } from './choose-claims.ts';
import { protectionsOf } from './protect-nodes.ts';

const OWNER = 'table//plan/plan-uid';
const OTHER = 'table//other/other-uid';
const NODE: NodeView = {
  name: 'node-1',
  unschedulable: false,
  cordonOwner: undefined,
  taintOwner: undefined,
};
const BOTH = { coordinate: ['ClusterAutoscaler', 'Karpenter'] } as const;

interface Scene {
  readonly states?: readonly RecordedState[];
  readonly facts?: KnownFacts;
  readonly rollout?: Partial<Rollout>;
  readonly parts?: SnapshotChanges;
  readonly policy?: Partial<RolloutPolicy>;
}

function assessmentOf({ states = ['intended'], facts = {}, rollout, parts, policy }: Scene) {
  const targets = states.map((state, index) => buildTarget(`n${index + 1}`, state));
  const stages = [buildStage('worker', targets), buildStage('worker', ['late'], { command: 1 })];
  const base = buildSnapshot(buildRollout(stages, rollout), { n1: facts });
  return assess(withParts(base, parts), buildPolicy(policy), T0);
}

const unset = (tool: MarkState['tool']): MarkState => ({ tool, isSet: false, owner: undefined });
const set = (tool: MarkState['tool'], owner?: string): MarkState => ({ tool, isSet: true, owner });
const LACKING = [unset('ClusterAutoscaler'), unset('Karpenter')];

describe('the marks of a node', () => {
  function toolsOf(
    marks: readonly MarkState[] | undefined,
    observation: Observation,
    more: Scene = {},
  ) {
    const facts = { node: { ...NODE, marks }, observation };
    const parts = { plan: { markOwner: OWNER } };
    return protectionsOf(assessmentOf({ facts, parts, policy: BOTH, ...more })).map(
      ({ tools }) => tools,
    );
  }

  test('are set for each tool of the policy before the signal', () => {
    const facts = { node: { ...NODE, marks: LACKING } };
    const parts = { plan: { markOwner: OWNER } };
    const assessment = assessmentOf({ facts, parts, policy: BOTH });
    const [stage] = assessment.snapshot.rollout.stages;
    expect(protectionsOf(assessment)).toEqual([
      {
        kind: 'protect',
        stage,
        target: stage?.targets[0],
        node: 'node-1',
        owner: OWNER,
        tools: ['ClusterAutoscaler', 'Karpenter'],
      },
    ]);
  });

  test.each<[string, readonly MarkState[] | undefined, Observation, string[][]]>([
    ['lacks them after its signal', LACKING, sent(), [['ClusterAutoscaler', 'Karpenter']]],
    ['lacks them at work', LACKING, working('Restart'), [['ClusterAutoscaler', 'Karpenter']]],
    ['lacks them after its success', LACKING, succeeded(), []],
    ['has no known marks', undefined, NONE, []],
    ['has lost a mark that this plan had set', [{ ...unset('Karpenter'), owner: OWNER }], NONE, []],
    ['has a mark of people', [set('Karpenter')], NONE, []],
    ['has a mark of this plan', [set('Karpenter', OWNER)], NONE, []],
    [
      'has a mark of another plan before its signal',
      [set('Karpenter', OTHER)],
      NONE,
      [['Karpenter']],
    ],
    ['has a mark of another plan at work', [set('Karpenter', OTHER)], sent(), []],
    [
      'has lost a mark of another plan',
      [{ ...unset('Karpenter'), owner: OTHER }],
      sent(),
      [['Karpenter']],
    ],
  ])('that %s', (_title, marks, observation, expected) => {
    expect(toolsOf(marks, observation)).toEqual(expected);
  });

  test('of another plan stay if the plan owns no marks', () => {
    const parts = { plan: { markOwner: undefined } };
    expect(toolsOf([set('Karpenter', OTHER)], NONE, { parts })).toEqual([]);
  });

  test.each<[string, Scene]>([
    ['the plan has ended', { rollout: { phase: 'failed' } }],
    ['the policy names no tool', { policy: {} }],
    ['the policy names only other tools', { policy: { coordinate: ['Kured'] } }],
    ['the plan owns no marks', { parts: { plan: { markOwner: undefined } } }],
    ['the target waits', { states: ['pending'] }],
    ['the target waits for its gates before the signal', { policy: { ...BOTH, paused: true } }],
    ['the target has no Node', { facts: { observation: sent() } }],
  ])('are not set if %s', (_title, more) => {
    expect(toolsOf(LACKING, NONE, more)).toEqual([]);
  });
});

describe('a claim is due', () => {
  const NEEDS: KnownFacts = { node: NODE, claimNeed: 'always' };
  const CLAIM = { plan: { claim: OWNER } };
  const LIMIT = { maxUnavailable: { nodes: 1 } } as const;
  const AWAITS = { plan: { claim: OWNER, awaits: { plan: 'plan other' } } } as SnapshotChanges;
  const refusal = { reason: because('TargetRefused', 'no'), recheckMs: 5000 };

  test.each<[string, boolean, Scene]>([
    ['of a target that lacks only its claim', true, { facts: NEEDS, parts: CLAIM }],
    [
      'of another target than the first',
      true,
      { states: ['intended', 'intended'], facts: NEEDS, parts: CLAIM },
    ],
    [
      'of a target that has the claim',
      false,
      { facts: { ...NEEDS, node: { ...NODE, claim: OWNER } }, parts: CLAIM },
    ],
    [
      'of a target that another plan has claimed',
      false,
      { facts: { ...NEEDS, node: { ...NODE, claim: OTHER } }, parts: CLAIM },
    ],
    ['of a target that needs no claim', false, { facts: { node: NODE }, parts: CLAIM }],
    ['of a target without a Node', false, { facts: { claimNeed: 'always' }, parts: CLAIM }],
    ['of a target whose write was refused', false, { facts: { ...NEEDS, refusal }, parts: CLAIM }],
    [
      'of a target that another gate stops',
      false,
      { facts: NEEDS, parts: CLAIM, policy: { paused: true } },
    ],
    ['of a target without an intent', false, { states: ['pending'], facts: NEEDS, parts: CLAIM }],
    ['of an ended plan', false, { facts: NEEDS, parts: CLAIM, rollout: { phase: 'failed' } }],
    [
      'of a plan that waits for another plan without a limit',
      true,
      { facts: NEEDS, parts: AWAITS },
    ],
    [
      'of a plan that waits for another plan with a limit',
      false,
      { facts: NEEDS, parts: AWAITS, policy: LIMIT },
    ],
    ['of a plan with a limit', true, { facts: NEEDS, parts: CLAIM, policy: LIMIT }],
  ])('%s: %s', (_title, expected, scene) => {
    expect(areClaimsDue(assessmentOf(scene))).toBe(expected);
  });
});

/**
 * Tests what the leader does and reports for a node that delegates its drain, and what it writes about cordons into a
 * signal.
 */

import { expect, onTestFinished, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage, PAYLOAD } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { formatDuration } from '../../util/duration.ts';
import { AFTER_TARGET } from '../gates/registry.ts';
import { type Gate, stop } from '../gates/types.ts';
import { answered, UNASKED, unanswered } from '../model/asked.ts';
import type { NodeView, Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { assess } from './assess.ts';

const OWNER = `plan-uid/${later(0)}/Plan`;
const NODE: NodeView = {
  name: 'n1',
  unschedulable: false,
  cordonOwner: undefined,
  taintOwner: undefined,
};
const OURS: NodeView = { ...NODE, unschedulable: true, cordonOwner: OWNER };
const THEIRS: NodeView = { ...NODE, unschedulable: true };
const HELD = 'shop/web-1 was to end by 2026-11-20T08:00:00Z (held by example.com/backup)';
const WEB =
  'PodDisruptionBudget default/web blocks default/web-1: it needs 1 healthy pods and has 1 currently';
const RESPONDER =
  'responder acme.example/move evicts default/a (it has reported): PodDisruptionBudget default/web is next';
const DRAIN_MS = buildPolicy().stepDeadlines.drain;

const asking = (waitsFor: 'drain' | 'uncordon', more: object = {}): Observation => ({
  kind: 'working',
  step: waitsFor === 'drain' ? 'Cordoning' : 'UnCordoning',
  attempt: later(0),
  since: later(0),
  waitsFor,
  ...more,
});

function evaluationOf(
  facts: Partial<TargetFacts>,
  { policy = {}, now = 0 }: { policy?: Partial<RolloutPolicy>; now?: number } = {},
) {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')]);
  const snapshot = buildSnapshot(buildRollout([stage]), {
    w1: { drainDelegation: answered(true), node: OURS, observation: asking('drain'), ...facts },
  });
  const [target = buildTarget('w1')] = stage.targets;
  const evaluation = assess(snapshot, buildPolicy(policy), T0 + now).of(stage, target);
  return { stage, target, evaluation };
}

const draining = (more: object = {}) =>
  ({ kind: 'draining', since: T0, left: 2, ...more }) as const;
const GONE = 'the pods are gone (kubectl get pods -A --field-selector spec.nodeName=n1 shows them)';
const UNTIL = {
  until: new Date(T0 + DRAIN_MS).toISOString().replace('.000', ''),
  recheckMs: DRAIN_MS,
};
const AT_WORK = { phase: 'working', effect: 'node-action' } as const;
const FAILED = { phase: 'failed', effect: 'fail', next: 'failed' } as const;

test('before any other drain action, the leader asks who may drain', () => {
  const { evaluation, stage, target } = evaluationOf({ drainDelegation: UNASKED });
  expect(evaluation).toEqual({
    ...AT_WORK,
    reason: because('DrainDelegationUnknown', 'asking whether w1 delegates its drain'),
    probe: { kind: 'drain-delegation', stage, target },
  });
  const reason = because('CannotDecide', 'no answer');
  const drainDelegation = unanswered({ reason, recheckMs: 7 });
  expect(evaluationOf({ drainDelegation }).evaluation).toEqual({
    ...AT_WORK,
    gate: 'drain-delegation',
    reason,
    ends: expect.any(String) as string,
    recheckMs: 7,
  });
});

test('for a target without a Node, nobody is asked who may drain', () => {
  const { evaluation } = evaluationOf({ drainDelegation: UNASKED, node: undefined });
  expect(evaluation.nodeAction).toMatchObject({ kind: 'acknowledge', node: undefined });
});

test('the cordon names its owner, and the drain follows the policy', () => {
  const options = { ...buildPolicy().drain.options, gracePeriodSeconds: 7 };
  const policy = { drain: { ...buildPolicy().drain, options } };
  const { evaluation, stage, target } = evaluationOf({ node: NODE });
  expect(evaluation).toEqual({
    ...AT_WORK,
    reason: because('Draining', 'w1 waits for the leader to cordon it'),
    nodeAction: { kind: 'cordon', stage, target, node: 'n1', owner: OWNER },
    ends: 'the leader has cordoned the node',
  });
  expect(evaluationOf({}, { policy }).evaluation.nodeAction).toMatchObject({
    kind: 'drain',
    node: 'n1',
    options,
  });
});

const EXCLUDING = {
  ...buildPolicy().drain,
  excludes: true,
  options: { ...buildPolicy().drain.options, graceMs: 5 },
};
/** Each row is a state of the Node before its drain. A crash or another person can leave the Node in this state. */
test.each<[string, NodeView, object]>([
  ['nothing is written', NODE, { kind: 'cordon', owner: OWNER, excludes: true }],
  ['the agent cordoned it', OURS, { kind: 'cordon', owner: OWNER, excludes: true }],
  [
    'cordon and label are written',
    { ...OURS, exclusion: 'ours' },
    { kind: 'drain', options: EXCLUDING.options },
  ],
  [
    'somebody else set the label',
    { ...OURS, exclusion: 'others' },
    { kind: 'drain', options: buildPolicy().drain.options },
  ],
  ['a person cordoned it', THEIRS, { kind: 'drain', options: buildPolicy().drain.options }],
])('a node that leaves load balancers first: %s', (_name, node, action) => {
  const { evaluation } = evaluationOf({ node }, { policy: { drain: EXCLUDING } });
  expect(evaluation.nodeAction).toMatchObject(action);
  if ('options' in action) expect(evaluation.nodeAction).toHaveProperty('options', action.options);
});

test('a drain that waits for volumes names them, and what ends the wait', () => {
  const detaching = 'waiting for 1 volume to detach: default/data';
  const { evaluation } = evaluationOf({ drain: draining({ left: 0, detaching }) });
  expect(evaluation).toEqual({
    ...AT_WORK,
    gate: 'drain',
    reason: because('Draining', `no pod is left on node n1; ${detaching}`),
    ends: 'the volumes are detached (kubectl get volumeattachments shows them)',
    ...UNTIL,
  });
});

test('a node that is only cordoned stays in load balancers', () => {
  const policy = { drain: { ...EXCLUDING, cordonOnly: true } };
  expect(evaluationOf({ node: NODE }, { policy }).evaluation.nodeAction).not.toHaveProperty(
    'excludes',
  );
  expect(evaluationOf({}, { policy }).evaluation.nodeAction).toHaveProperty('kind', 'acknowledge');
});

test.each<[string, Partial<TargetFacts>, Partial<RolloutPolicy>, object]>([
  ['the drain begins', {}, {}, because('Draining', 'w1 waits for the leader to drain it')],
  [
    'it is drained',
    { drain: { kind: 'drained', since: T0 } },
    {},
    because('InFlight', 'w1 is drained'),
  ],
  [
    'a controller without a Node',
    { node: undefined },
    {},
    because('InFlight', 'w1 has no Node to drain'),
  ],
  [
    'drains are disabled',
    { node: NODE },
    { drain: { ...buildPolicy().drain, enabled: false } },
    because('InFlight', 'w1 is not drained: spec.drain.enabled of the policy is false'),
  ],
  [
    'the end of a controller without a Node',
    { node: undefined, observation: asking('uncordon') },
    {},
    because('InFlight', 'w1 waits for the leader to let it continue'),
  ],
])('only a node that is drained is said to be: %s', (_name, facts, policy, reason) => {
  expect(evaluationOf(facts, { policy }).evaluation.reason).toEqual(reason);
});

test.each<
  [string, TargetFacts['drain'], { policy?: Partial<RolloutPolicy>; now?: number }, object]
>([
  [
    'the pods cannot be listed',
    draining({ left: 0 }),
    {},
    {
      ...AT_WORK,
      gate: 'drain',
      reason: because('Draining', 'Refit could not list the pods of node n1 yet'),
      ends: GONE,
      ...UNTIL,
    },
  ],
  [
    'two pods are left',
    draining(),
    {},
    {
      ...AT_WORK,
      gate: 'drain',
      reason: because('Draining', '2 pods are left on node n1'),
      ends: GONE,
      ...UNTIL,
    },
  ],
  [
    'one pod is left',
    draining({ left: 1 }),
    {},
    {
      ...AT_WORK,
      gate: 'drain',
      reason: because('Draining', '1 pod is left on node n1'),
      ends: GONE,
      ...UNTIL,
    },
  ],
  [
    'more pods are left than are named',
    draining({ left: 7, pods: ['default/a', 'default/b'] }),
    {},
    {
      ...AT_WORK,
      gate: 'drain',
      reason: because('Draining', '7 pods are left on node n1 (default/a, default/b and 5 more)'),
      ends: GONE,
      ...UNTIL,
    },
  ],
  [
    'a budget blocks',
    draining({ blockedBy: WEB }),
    {},
    {
      ...AT_WORK,
      gate: 'drain',
      reason: because('DrainBlocked', `2 pods are left on node n1: ${WEB}`),
      ends: 'the budget allows the eviction: an operator that manages the pods may change it now that the node is cordoned; otherwise change the budget, or run more replicas',
      ...UNTIL,
    },
  ],
  [
    'a responder evicts the pods, and speaks of a budget',
    draining({ waitingFor: RESPONDER }),
    {},
    {
      ...AT_WORK,
      gate: 'drain',
      reason: because('Draining', `2 pods are left on node n1: ${RESPONDER}`),
      ends: GONE,
      ...UNTIL,
    },
  ],
  [
    'a budget blocks some pods, and a responder evicts others',
    draining({ blockedBy: HELD, waitingFor: RESPONDER }),
    {},
    {
      ...AT_WORK,
      gate: 'drain',
      reason: because('DrainBlocked', `2 pods are left on node n1: ${HELD}; ${RESPONDER}`),
      ends: GONE,
      ...UNTIL,
    },
  ],
  [
    'a finalizer holds a pod, and no budget',
    draining({ left: 1, blockedBy: HELD }),
    {},
    {
      ...AT_WORK,
      gate: 'drain',
      reason: because('DrainBlocked', `1 pod is left on node n1: ${HELD}`),
      ends: GONE,
      ...UNTIL,
    },
  ],
  [
    'a drain without a deadline',
    draining(),
    { policy: { drain: { ...buildPolicy().drain, onDeadline: 'wait' } }, now: 9 * DRAIN_MS },
    {
      ...AT_WORK,
      gate: 'drain',
      reason: because('Draining', '2 pods are left on node n1'),
      ends: GONE,
    },
  ],
  [
    'the very end of the deadline',
    draining({ blockedBy: WEB }),
    { now: DRAIN_MS },
    {
      ...FAILED,
      reason: because(
        'DrainTooLong',
        `w1 was not drained within ${formatDuration(DRAIN_MS)}: 2 pods are left on node n1: ${WEB}`,
      ),
    },
  ],
  [
    'the very end, where the drain may be left out then',
    draining({ blockedBy: WEB }),
    { now: DRAIN_MS, policy: { drain: { ...buildPolicy().drain, onDeadline: 'proceed' } } },
    {
      ...AT_WORK,
      reason: because(
        'InFlight',
        `w1 was not drained within ${formatDuration(DRAIN_MS)}: 2 pods are left on node n1: ${WEB}`,
      ),
      nodeAction: expect.objectContaining({ kind: 'acknowledge', node: 'n1' }) as unknown,
      ends: 'the leader lets the node continue',
    },
  ],
  [
    'somebody who holds up the plan',
    { kind: 'drained', since: T0 },
    { policy: { heldBy: 'Cluster default/prod' } },
    {
      ...AT_WORK,
      gate: 'not-paused',
      reason: because('Paused', 'Cluster default/prod is paused: w1 is not drained'),
      ends: 'Cluster default/prod is resumed',
    },
  ],
  [
    'a pod that may not go',
    { kind: 'failed', since: T0, reason: 'default/db has local data' },
    {},
    {
      ...FAILED,
      reason: because('DrainRefused', 'w1 cannot be drained: default/db has local data'),
    },
  ],
])('what a drain waits for: %s', (_name, drain, options, expected) => {
  expect(evaluationOf({ drain }, options).evaluation).toEqual(expected);
});

const VERIFYING = { phase: 'verifying', effect: 'node-action' } as const;

test.each<[string, Observation, 'ours' | 'always', 'ours' | 'always']>([
  ['its owner is in the mark', asking('uncordon'), 'ours', 'ours'],
  ['the policy takes any', asking('uncordon'), 'always', 'always'],
  [
    'an original agent set it without a name',
    asking('uncordon', { ownsCordon: true }),
    'ours',
    'always',
  ],
])(
  'a node that waits for its uncordon says whose cordon goes: %s',
  (_name, observation, uncordon, expected) => {
    const policy = { drain: { ...buildPolicy().drain, uncordon } };
    const { evaluation, stage, target } = evaluationOf({ observation }, { policy });
    expect(evaluation).toEqual({
      ...VERIFYING,
      reason: because('InFlight', 'w1 waits for the leader to uncordon it'),
      nodeAction: { kind: 'acknowledge', stage, target, node: 'n1', uncordon: expected },
      ends: 'the leader uncordons the node',
    });
  },
);

test('a node is not uncordoned before it is Ready', () => {
  const { evaluation } = evaluationOf({ observation: asking('uncordon'), ready: false });
  expect(evaluation).toEqual({
    ...VERIFYING,
    gate: 'node-ready',
    reason: because('NodeNotReady', 'node w1 is not Ready'),
    ends: 'the node is Ready',
  });
});

test.each([
  ['that waits for its uncordon', asking('uncordon'), { effect: 'fail', gate: 'toy' }],
  [
    'that is done',
    { kind: 'succeeded', attempt: later(0), since: later(0) } as const,
    { effect: 'verify' },
  ],
])('a verifier that says stop fails a target %s', (_name, observation, more) => {
  const list = AFTER_TARGET as Gate[];
  const toy: Gate = { name: 'toy', evaluate: () => stop('TargetFailed', 'it burns') };
  list.push(toy);
  onTestFinished(() => void list.splice(list.indexOf(toy), 1));
  const reason = because('TargetFailed', 'it burns');
  expect(evaluationOf({ observation }).evaluation).toEqual({
    phase: 'failed',
    next: 'failed',
    reason,
    ...more,
  });
});

function signalOf(
  facts: Partial<TargetFacts>,
  policy: Partial<RolloutPolicy> = {},
  more: Partial<Stage> = {},
) {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')], more);
  const agent = { soakMs: 5 };
  const { signals } = decide(
    buildSnapshot(buildRollout([stage]), { w1: facts }),
    buildPolicy({ agent, ...policy }),
    T0 + MINUTE / 2,
  );
  const [signal] = signals;
  return { payload: signal?.payload, agent: signal?.agent };
}

const PLAIN = { soakMs: 5 };

test.each<[string, Partial<TargetFacts>, Partial<RolloutPolicy>, object]>([
  ['its cordon would be named so', { node: NODE }, {}, { ...PLAIN, cordonFor: OWNER }],
  [
    "somebody else's was found",
    { node: THEIRS },
    {},
    { ...PLAIN, cordonFor: OWNER, foundCordoned: true },
  ],
  ['our own was found', { node: OURS }, {}, { ...PLAIN, cordonFor: OWNER }],
  ['it has no Node', {}, {}, PLAIN],
  [
    'nothing is drained',
    { node: NODE },
    { drain: { ...buildPolicy().drain, enabled: false } },
    PLAIN,
  ],
])('a signal tells the agent about cordons: %s', (_name, facts, policy, agent) => {
  expect(signalOf(facts, policy)).toEqual({ payload: PAYLOAD, agent });
});

test('a plan that downloads nothing signals without a payload', () => {
  const nothing = { payloads: undefined } as unknown as Partial<Stage>;
  expect(signalOf({}, {}, nothing)).toEqual({ payload: undefined, agent: PLAIN });
});

test('an unsignalled intent counts its own slot as room', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')], { maxInFlight: 2 });
  const foreign = {
    name: 'w9',
    role: 'worker',
    attempt: later(0),
    since: later(0),
    leftMs: HOUR,
  } as const;
  const snapshot = withParts(buildSnapshot(buildRollout([stage])), {
    outside: { foreignWork: [foreign] },
  });
  expect(decide(snapshot, buildPolicy(), T0).signals).toHaveLength(1);
  const one = { ...snapshot, rollout: buildRollout([{ ...stage, maxInFlight: 1 }]) };
  expect(decide(one, buildPolicy(), T0).signals).toEqual([]);
});

test('a drain with other options than the policy has now begins anew with those', () => {
  const { options } = buildPolicy().drain;
  const begun = evaluationOf({
    node: NODE && { ...NODE, unschedulable: true },
    drain: { ...draining(), options },
  });
  expect(begun.evaluation.nodeAction).toBeUndefined();
  const outdated = { ...draining(), options: { ...options, gracePeriodSeconds: 7 } };
  const { evaluation } = evaluationOf({
    node: NODE && { ...NODE, unschedulable: true },
    drain: outdated,
  });
  expect(evaluation.nodeAction).toMatchObject({ kind: 'drain', options });
});

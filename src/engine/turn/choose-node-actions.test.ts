/** Tests node actions: drains, cancelled signals, and the cleanup. */

import { describe, expect, test } from 'vitest';
import type { Decision } from '../../../test/support/builders/decisions.ts';
import { decide } from '../../../test/support/builders/decisions.ts';
import {
  failed,
  NONE,
  sent,
  succeeded,
  working,
} from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildFacts, buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { DrainState } from '../../drain/running-drains.ts';
import { answered, UNASKED, unanswered } from '../model/asked.ts';
import { type Controls, NO_CONTROLS } from '../model/controls.ts';
import type { NodeView, Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Role, RolloutPhase, Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

const NODE: NodeView = {
  name: 'w1',
  unschedulable: false,
  cordonOwner: undefined,
  taintOwner: undefined,
};
const OURS: NodeView = { ...NODE, unschedulable: true, cordonOwner: `plan-uid/${later(0)}` };
const THEIRS: NodeView = { ...NODE, unschedulable: true };
const ABORTED: Partial<Controls> = { abort: 'wrong version' };
const LEFT: DrainState = {
  kind: 'draining',
  since: T0,
  left: 2,
  blockedBy: 'default/web lets none of its pods go',
};

function asking(waitsFor: 'drain' | 'uncordon'): Observation {
  const isDrain = waitsFor === 'drain';
  const step = isDrain ? 'Cordoning' : 'UnCordoning';
  const seen = { step, attempt: later(0), since: later(0) };
  return {
    kind: 'working',
    ...seen,
    waitsFor,
    part: isDrain ? 'drain' : 'ready',
    cancellable: isDrain,
  };
}

interface Situation {
  readonly state?: RecordedState;
  /** The phase of the rollout. The default is `failed` if the target has failed, otherwise `running`. */
  readonly phase?: RolloutPhase;
  readonly role?: Role;
  /** The names of other targets, after this target in the list. */
  readonly behind?: readonly string[];
  readonly facts?: Partial<TargetFacts>;
  readonly controls?: Partial<Controls>;
  readonly policy?: Partial<RolloutPolicy>;
  readonly now?: number;
}

function decisionOn(situation: Situation): Decision {
  const {
    state = 'intended',
    role = 'worker',
    behind = [],
    facts,
    controls,
    policy,
    now = MINUTE,
    phase = state === 'failed' ? 'failed' : 'running',
  } = situation;
  const stage = buildStage(role, [buildTarget('w1', state, { since: later(0) }), ...behind]);
  const isOver = phase === 'failed';
  const rollout = buildRollout([stage], {
    ...(isOver ? { phase: 'failed', reason: because('TargetFailed', 'w1 failed') } : {}),
    source: { ...buildRollout([]).source, uid: 'plan-uid' },
  });
  const snapshot = buildSnapshot(rollout, {
    w1: { drainDelegation: answered(true), node: NODE, ...facts },
  });
  return decide(
    withParts(snapshot, { plan: { controls: { ...NO_CONTROLS, ...controls } } }),
    buildPolicy(policy),
    T0 + now,
  );
}

/** Returns the node actions of the decision, the recorded state, the probes and the waits. */
function toldOf(situation: Situation): object {
  const { nodeActions, record, probes, waits } = decisionOn(situation);
  const target = record?.stages[0]?.targets[0];
  return {
    ...(nodeActions.length > 0 ? { nodeActions: nodeActions.map(({ kind }) => kind).join() } : {}),
    ...(target ? { recorded: target.state } : {}),
    ...(record?.reason ? { reason: record.reason.code } : {}),
    ...(probes.length > 0 ? { waitsFor: probes.map(({ kind }) => kind).join() } : {}),
    ...(waits.length > 0 && nodeActions.length === 0
      ? { waits: waits.map(({ reason }) => reason.code).join() }
      : {}),
  };
}

describe('a node that asks to be drained', () => {
  test('a node that drains itself for too long fails like any drain', () => {
    const { drain } = buildPolicy().stepDeadlines;
    const facts = {
      drainDelegation: answered(false),
      node: OURS,
      observation: asking('drain'),
      watchedMs: drain,
    };
    const told = toldOf({ facts, now: drain, policy: { targetDeadlineMs: 9 * HOUR } });
    expect(told).toEqual({ recorded: 'failed', reason: 'DrainTooLong' });
  });

  test.each([
    ['stop', 'DrainTooLong', 'failed'],
    ['skip', 'DrainTooLong', 'running'],
  ] as const)(
    'one that gave up by itself, at its own deadline: the plan follows the policy, %s',
    (onDeadline, code, phase) => {
      const observation = { ...failed('not drained within 1 h'), late: 'drain' } as const;
      const policy = { maxFailures: 5, drain: { ...buildPolicy().drain, onDeadline } };
      const { record } = decisionOn({ facts: { observation }, behind: ['w2'], policy });
      expect(record).toMatchObject({
        phase,
        reason: { code, message: 'w1: not drained within 1 h' },
      });
    },
  );

  test('one whose own rules refused the signal says so by its reason', () => {
    const observation = { ...failed('FailedDownload: no sha256'), refused: true } as const;
    const { record } = decisionOn({ facts: { observation } });
    expect(record).toMatchObject({
      reason: { code: 'TargetRefused', message: 'w1: FailedDownload: no sha256' },
    });
  });

  test('a node that drains itself is asked again: no watch shows when it delegates', () => {
    const { recheckAfterMs } = decisionOn({
      facts: { drainDelegation: answered(false), observation: asking('drain') },
    });
    expect(recheckAfterMs).toBe(10_000);
  });

  test.each<[string, Situation, object]>([
    [
      'whether it may is asked first',
      { facts: { drainDelegation: UNASKED } },
      { waitsFor: 'drain-delegation', waits: 'DrainDelegationUnknown' },
    ],
    [
      'where nobody can tell it waits, and says why',
      {
        facts: {
          drainDelegation: unanswered({
            reason: because('CannotDecide', 'no answer'),
            recheckMs: 2000,
          }),
        },
      },
      { waits: 'CannotDecide' },
    ],
    [
      'one that does it itself is left alone',
      { facts: { drainDelegation: answered(false) } },
      { waits: 'InFlight' },
    ],
    ['the cordon comes first', {}, { nodeActions: 'cordon' }],
    ['then the drain', { facts: { node: OURS } }, { nodeActions: 'drain' }],
    [
      'Refit also drains a node that somebody else has cordoned',
      { facts: { node: THEIRS } },
      { nodeActions: 'drain' },
    ],
    [
      'it goes on once it is drained',
      { facts: { node: OURS, drain: { kind: 'drained', since: T0 } } },
      { nodeActions: 'acknowledge' },
    ],
    ['what blocks it is told', { facts: { node: OURS, drain: LEFT } }, { waits: 'DrainBlocked' }],
    [
      'a node fails if its drain takes too long',
      { facts: { node: OURS, drain: LEFT }, now: 2 * HOUR - 1 },
      { recorded: 'failed', reason: 'DrainTooLong' },
    ],
    [
      'with onDeadline set to wait, Refit still waits for a drain after the drain deadline',
      {
        facts: { node: OURS, drain: LEFT },
        now: 2 * HOUR - 1,
        policy: { drain: { ...buildPolicy().drain, onDeadline: 'wait' } },
      },
      { waits: 'DrainBlocked' },
    ],
    [
      'a pod that may not go',
      {
        facts: {
          node: OURS,
          drain: { kind: 'failed', since: T0, reason: 'default/db has local data' },
        },
      },
      { recorded: 'failed', reason: 'DrainRefused' },
    ],
    ['nothing to drain', { facts: { node: undefined } }, { nodeActions: 'acknowledge' }],
    [
      'if drains are turned off, Refit lets the node continue without a drain',
      { policy: { drain: { ...buildPolicy().drain, enabled: false } } },
      { nodeActions: 'acknowledge' },
    ],
  ])('%s', (_name, { facts, ...situation }, told) => {
    expect(toldOf({ ...situation, facts: { observation: asking('drain'), ...facts } })).toEqual(
      told,
    );
  });
});

describe('a node that waits for its uncordon', () => {
  test.each<[string, Situation, object]>([
    ['acknowledged once it is Ready', { facts: { node: OURS } }, { nodeActions: 'acknowledge' }],
    ['not before', { facts: { node: OURS, ready: false } }, { waits: 'NodeNotReady' }],
    [
      'acknowledged even if it failed meanwhile',
      { state: 'failed', facts: { node: OURS } },
      { nodeActions: 'acknowledge' },
    ],
    [
      'acknowledged even if it failed before an abort',
      { state: 'failed', controls: ABORTED, facts: { node: OURS } },
      { nodeActions: 'acknowledge' },
    ],
  ])('%s', (_name, { facts, ...situation }, told) => {
    expect(toldOf({ ...situation, facts: { observation: asking('uncordon'), ...facts } })).toEqual(
      told,
    );
  });

  test('the action says whose cordon to remove', () => {
    const [nodeAction] = decisionOn({
      facts: { observation: asking('uncordon'), node: OURS },
    }).nodeActions;
    expect(nodeAction).toMatchObject({ kind: 'acknowledge', node: 'w1', uncordon: 'ours' });
  });
});

describe('what must stop', () => {
  test.each<[string, Situation, object]>([
    [
      'an abort cancels a signal that no agent has answered',
      { facts: { observation: sent() }, controls: ABORTED },
      { nodeActions: 'cancel' },
    ],
    [
      'and what waits for its drain',
      { facts: { observation: asking('drain') }, controls: ABORTED },
      { nodeActions: 'cancel' },
    ],
    [
      'what touches the service finishes',
      { facts: { observation: working('Restart') }, controls: ABORTED },
      { waits: 'InFlight,Aborted' },
    ],
    [
      'an intent that was not signalled is cancelled',
      { controls: ABORTED, facts: { observation: NONE } },
      { recorded: 'pending', reason: 'Aborted' },
    ],
    [
      'a failed target is cancelled, or it would start later',
      { state: 'failed', facts: { observation: asking('drain'), node: OURS } },
      { nodeActions: 'cancel' },
    ],
  ])('%s', (_name, situation, told) => {
    expect(toldOf(situation)).toEqual(told);
  });
});

describe('what is left on a node', () => {
  const RELEASED: Situation = { state: 'pending', phase: 'failed', controls: ABORTED };
  test.each<[string, Situation, object]>([
    [
      'a cordon of ours goes with its target',
      { state: 'failed', facts: { observation: failed('404'), node: OURS } },
      { nodeActions: 'clean-up' },
    ],
    [
      'a cordon of ours goes after an abort, too, from a target that failed',
      { state: 'failed', controls: ABORTED, facts: { observation: failed('404'), node: OURS } },
      { nodeActions: 'clean-up' },
    ],
    [
      'and from a target that was released before its signal, once the abort is recorded',
      { ...RELEASED, facts: { observation: NONE, node: OURS } },
      { nodeActions: 'clean-up' },
    ],
    [
      'Refit leaves the cordon of somebody else on a failed node',
      { state: 'failed', facts: { observation: failed('404'), node: THEIRS } },
      {},
    ],
    [
      'a cordon of another rollout of ours stays',
      {
        state: 'failed',
        facts: { observation: failed('404'), node: { ...OURS, cordonOwner: 'other/1' } },
      },
      {},
    ],
    [
      'a taint of another rollout stays',
      {
        state: 'failed',
        facts: { observation: succeeded(), node: { ...NODE, taintOwner: 'Plan.other' } },
      },
      {},
    ],
    [
      'that of an earlier version, which named nobody, goes like one of its own',
      { state: 'failed', facts: { observation: succeeded(), node: { ...NODE, taintOwner: '' } } },
      { nodeActions: 'clean-up' },
    ],
    [
      'a taint goes once its target is done',
      {
        state: 'failed',
        facts: { observation: succeeded(), node: { ...NODE, taintOwner: 'Plan.plan-uid' } },
      },
      { nodeActions: 'clean-up' },
    ],
    [
      'a taint goes after an abort, too, from a target that was still to be done',
      { ...RELEASED, facts: { observation: NONE, node: { ...NODE, taintOwner: 'Plan.plan-uid' } } },
      { nodeActions: 'clean-up' },
    ],
  ])('%s', (_name, situation, told) => {
    expect(toldOf(situation)).toEqual(told);
  });
});

test('Refit taints the nodes still to be upgraded only while pods are evicted from another node', () => {
  const stage = buildStage('worker', [
    buildTarget('w1', 'intended'),
    buildTarget('w2'),
    buildTarget('w3'),
  ]);
  const node = (name: string): NodeView => ({ ...NODE, name });
  const decisionWhile = (drain: DrainState): string[] =>
    decide(
      buildSnapshot(buildRollout([stage]), {
        w1: {
          ...buildFacts(),
          drainDelegation: answered(true),
          observation: asking('drain'),
          node: OURS,
          drain,
        },
        w2: { drainDelegation: answered(true), node: node('w2') },
        w3: {
          drainDelegation: answered(true),
          node: { ...node('w3'), taintOwner: 'Plan.plan-uid' },
        },
      }),
      buildPolicy(),
      T0 + MINUTE,
    ).nodeActions.map(({ kind, target }) => `${kind} ${target.name}`);
  expect(decisionWhile(LEFT)).toEqual(['taint w2']);
  expect(decisionWhile({ ...LEFT, left: 0 })).toEqual([]);
});

test('a node that a later command will upgrade keeps its taint', () => {
  const first = buildStage('worker', [buildTarget('w1', 'done'), buildTarget('w2', 'done')]);
  const second = buildStage('worker', [buildTarget('w1', 'intended'), buildTarget('w2')], {
    command: 1,
  });
  const nodeActionsWhile = (stages: readonly Stage[]): string[] =>
    decide(
      buildSnapshot(buildRollout(stages), {
        w1: {
          drainDelegation: answered(true),
          observation: asking('drain'),
          node: OURS,
          drain: LEFT,
        },
        w2: {
          drainDelegation: answered(true),
          node: { ...NODE, name: 'w2', taintOwner: 'Plan.plan-uid' },
        },
      }),
      buildPolicy(),
      T0 + MINUTE,
    ).nodeActions.map(({ kind, target }) => `${kind} ${target.name}`);
  expect(nodeActionsWhile([first, second])).toEqual([]);
  const over = buildStage('worker', [buildTarget('w1', 'intended'), buildTarget('w2', 'done')], {
    command: 1,
  });
  expect(nodeActionsWhile([first, over])).toContain('clean-up w2');
});

test('of two targets that failed each is cancelled for its own reason', () => {
  const [first, second, third] = ['w1', 'w2', 'w3'].map((name) =>
    buildTarget(name, 'failed', { since: later(0) }),
  );
  if (!first || !second || !third) throw new Error('there are three');
  const reason = because('DeadlineExceeded', 'w1 did not report within its deadline');
  const rollout = buildRollout([buildStage('worker', [first, second, third])], {
    phase: 'failed',
    reason,
  });
  const observation = asking('drain');
  const node = { ...OURS, name: 'w3' };
  const snapshot = buildSnapshot(rollout, {
    w1: { observation: sent() },
    w2: { observation: sent() },
    w3: { observation, drainDelegation: answered(true), node, drain: LEFT },
  });
  const { nodeActions } = decide(snapshot, buildPolicy(), T0 + 9 * HOUR);
  expect(
    nodeActions.map((each) => (each.kind === 'cancel' ? each.reason.message : each.kind)),
  ).toEqual([
    'w1 did not report within its deadline',
    'w2 did not report within its deadline',
    'w3 was not drained within 1 h: 2 pods are left on node w3: default/web lets none of its pods go',
  ]);
});

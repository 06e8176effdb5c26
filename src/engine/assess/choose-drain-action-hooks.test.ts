/**
 * Tests hooks between the drain and the restart: the order in which they run, what a node waits for, and the effect of
 * a failure.
 */

import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Hook, HookMoment, HookResult, HookState } from '../../hooks/rules.ts';
import { hookRunOf } from '../gates/hook-runs.ts';
import { answered } from '../model/asked.ts';
import type { NodeView, TargetFacts } from '../model/facts.ts';
import type { DrainPolicy } from '../policy/rollout-policy.ts';
import { nodeActionsOf } from '../turn/choose-node-actions.ts';
import { commandsFor } from '../turn/commands.ts';
import { assess } from './assess.ts';

const OWNER = `plan-uid/${later(0)}/Plan`;
const NODE: NodeView = {
  name: 'n1',
  unschedulable: true,
  cordonOwner: OWNER,
  taintOwner: undefined,
};
const ASKING = {
  kind: 'working',
  step: 'Cordoning',
  part: 'drain',
  attempt: later(0),
  since: later(0),
  waitsFor: 'drain',
  cancellable: true,
} as const;
const { options } = buildPolicy().drain;
const DRAINED = { kind: 'drained', since: T0, options } as const;
const DRAINING = { kind: 'draining', since: T0, left: 1, options } as const;

function hook(name: string, when: HookMoment, more: Partial<Hook> = {}): Hook {
  const action = { kind: 'webhook', url: 'https://hooks.example/x', secretName: 's' } as const;
  return { name, when, action, timeoutMs: 10 * MINUTE, ...more };
}

/** The hooks are in the order of the policy, which is not the order in which they run. */
const BOTH = [hook('flush', 'beforeRestart'), hook('detach', 'afterDrain')];

interface Scene {
  readonly hooks?: readonly Hook[];
  readonly results?: Readonly<Record<string, HookState>>;
  readonly facts?: Partial<TargetFacts>;
  readonly drain?: Partial<DrainPolicy>;
  readonly now?: number;
}

function scene({ hooks = BOTH, results = {}, facts, drain, now = MINUTE }: Scene) {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')]);
  const [target = buildTarget('w1')] = stage.targets;
  const snapshot = buildSnapshot(buildRollout([stage]), {
    w1: {
      drainDelegation: answered(true),
      node: NODE,
      observation: ASKING,
      drain: DRAINED,
      ...facts,
    },
  });
  const known = hooks.flatMap((each): HookResult[] => {
    const state = results[each.name];
    const { id } = hookRunOf({ snapshot, stage, target }, each);
    const found = { id, hook: each.name, target: 'w1', since: T0 };
    return state ? [{ ...found, state, message: `it is ${state}` }] : [];
  });
  const policy = buildPolicy({
    name: 'careful',
    hooks,
    drain: { ...buildPolicy().drain, ...drain },
  });
  return {
    assessment: assess(withParts(snapshot, { outside: { hooks: known } }), policy, T0 + now),
    stage,
    target,
  };
}

/** Returns the due hooks, and the node actions of the turn. */
function done(given: Scene): string[] {
  const { assessment } = scene(given);
  return commandsFor(assessment).flatMap((command) => {
    if (command.kind === 'hooks') return command.due.map((run) => run.hook.name);
    return command.kind === 'node-action' ? command.nodeAction.kind : [];
  });
}

const FIRST_DONE = { detach: 'succeeded' } as const;
const ALL_DONE = { detach: 'succeeded', flush: 'succeeded' } as const;

test.each<[string, Scene, string[]]>([
  ['a pod is left', { facts: { drain: DRAINING } }, []],
  ['a new leader drains again', { facts: { drain: undefined } }, ['drain']],
  ['the node is drained', {}, ['detach']],
  ['the hook after the drain has succeeded', { results: FIRST_DONE }, ['flush']],
  ['both have succeeded', { results: ALL_DONE }, ['acknowledge']],
  ['the drain is off', { drain: { enabled: false } }, ['flush']],
  ['the drain is only a cordon', { drain: { cordonOnly: true } }, ['flush']],
  ['the target has no Node', { facts: { node: undefined } }, ['flush']],
  [
    'the drain is off, and all is done',
    { drain: { enabled: false }, results: ALL_DONE },
    ['acknowledge'],
  ],
  [
    'the drain took too long, and the policy goes on',
    { facts: { drain: DRAINING }, drain: { onDeadline: 'proceed' }, now: 4 * HOUR },
    ['detach'],
  ],
  [
    'a failure is ignored',
    {
      hooks: [hook('detach', 'afterDrain', { ignoresFailure: true })],
      results: { detach: 'failed' },
    },
    ['acknowledge'],
  ],
  [
    'hooks of other moments',
    { hooks: [hook('a', 'beforeDrain'), hook('b', 'afterVerified')] },
    ['acknowledge'],
  ],
])('what the leader does if %s', (_what, given, expected) => {
  expect(done(given)).toEqual(expected);
});

test('a node says which hook it waits for', () => {
  const { assessment, stage, target } = scene({ results: { detach: 'running' } });
  expect(assessment.of(stage, target)).toMatchObject({
    phase: 'working',
    gate: 'hooks-after-drain',
    reason: {
      code: 'HookRunning',
      message: 'the hook detach of UpgradePolicy careful must succeed for w1: it is running',
    },
    ends: 'the hook has succeeded, or its deadline of 10 min has passed',
  });
});

test('after a failure the target fails, and its work is cancelled before it has changed the node', () => {
  const { assessment, stage, target } = scene({ results: { detach: 'failed' } });
  const message = 'w1: the hook detach of UpgradePolicy careful failed: it is failed';
  const { next, reason } = assessment.of(stage, target);
  const details = { policy: 'careful', hook: 'detach' };
  expect({ next, reason }).toEqual({
    next: 'failed',
    reason: { code: 'HookFailed', message, details },
  });

  const failed = { ...target, state: 'failed' } as const;
  const rollout = buildRollout([{ ...stage, targets: [failed] }]);
  const snapshot = { ...assessment.snapshot, rollout };
  const actions = nodeActionsOf(assess(snapshot, assessment.policy, assessment.now));
  expect(actions).toMatchObject([{ kind: 'cancel', reason: { code: 'HookFailed', message } }]);
});

test('the run is named by the attempt, so that the next leader asks for the same one', () => {
  const { assessment, stage, target } = scene({ facts: { version: 'v1.35.0' } });
  const { hookRun } = assessment.of(stage, target);
  expect(hookRun).toMatchObject({
    hook: { name: 'detach' },
    variables: { REFIT_FROM_VERSION: 'v1.35.0', REFIT_ATTEMPT: target.since },
  });
  const next = scene({ facts: { version: 'v1.35.0' }, now: 5 * MINUTE });
  expect(next.assessment.of(next.stage, next.target).hookRun?.id).toBe(hookRun?.id);
});

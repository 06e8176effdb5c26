/** Tests which waits people see, and until when each of them lasts. */
import { describe, expect, test } from 'vitest';
import { buildHook } from '../../../test/support/builders/hooks.ts';
import { sent } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Hook, HookMoment, HookResult } from '../../hooks/rules.ts';
import type { Wait } from '../model/decision.ts';
import type { ReasonCode } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import { withTargets } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { shownWaits } from './shown-waits.ts';

function wait(code: ReasonCode, gate: string, more: Partial<Wait> = {}): Wait {
  return { gate, reason: { code, message: code }, since: later(0), ...more };
}

/** A plan whose worker w1 is in progress, and whose worker w2 is pending. */
function plan(states: readonly RecordedState[] = ['intended', 'pending']): Rollout {
  const targets = states.map((state, index) => buildTarget(`w${index + 1}`, state));
  return buildRollout([buildStage('worker', targets)]);
}

interface Given {
  readonly rollout?: Rollout;
  readonly upcoming?: Rollout;
  readonly hooks?: readonly HookResult[];
  readonly policy?: Partial<RolloutPolicy>;
  readonly isSent?: boolean;
}

function shown(
  waits: readonly Wait[],
  { rollout = plan(), upcoming = rollout, hooks, policy = {}, isSent = false }: Given = {},
) {
  const facts = isSent ? { w1: { observation: sent() } } : {};
  const snapshot = withParts(buildSnapshot(rollout, facts), { outside: { hooks } });
  return shownWaits(
    { snapshot, policy: buildPolicy({ name: 'careful', ...policy }), upcoming },
    waits,
  );
}

const SLOT = wait('NoFreeSlot', 'slots', { target: 'w2' });
const OF_PLAN = wait('Paused', 'paused');

describe('waits that nobody sees', () => {
  test('the waits of a new plan that is about to end', () => {
    const rollout = { ...plan(['pending', 'pending']), phase: 'new' } as const;
    expect(shown([SLOT], { rollout, upcoming: { ...rollout, phase: 'invalid' } })).toEqual([]);
    expect(shown([SLOT], { rollout, upcoming: { ...rollout, phase: 'running' } })).toEqual([SLOT]);
    expect(shown([SLOT], { upcoming: { ...plan(), phase: 'failed' } })).toEqual([SLOT]);
  });

  test('the waits of a target that is about to fail, but not those of the others and of the plan', () => {
    const rollout = plan(['intended', 'pending', 'failed']);
    const waits = ['w1', 'w2', 'w3'].map((target) =>
      wait('HealthCheckFailing', 'health', { target }),
    );
    const upcoming = withTargets(rollout, [{ ...buildTarget('w1', 'failed'), key: '0/worker/w1' }]);
    expect(shown([...waits, OF_PLAN], { rollout, upcoming })).toEqual([...waits.slice(1), OF_PLAN]);
  });

  test.each<[string, Wait]>([
    ['of targets that are done', wait('Completed', 'done', { target: 'w2' })],
    ['of targets that have failed', wait('TargetFailed', 'failed', { target: 'w2' })],
    [
      'for what this machine could not ask',
      wait('ControlPlaneUnknown', 'health', { target: 'w2' }),
    ],
  ])('the waits %s', (_title, hidden) => {
    expect(shown([hidden, SLOT])).toEqual([SLOT]);
  });
});

describe('the hook that runs explains a wait that says nothing about its cause', () => {
  const hook = (when: HookMoment): Hook => buildHook('backup', when);
  const OF_TARGET: HookResult = {
    id: 'x',
    hook: 'backup',
    target: 'w1',
    state: 'running',
    message: 'Job hooks/x runs',
    since: T0 + 1000,
  };
  const { target: _, ...OF_WHOLE_PLAN } = OF_TARGET;
  const before = { hooks: [hook('beforeDrain')] };
  const beforePlan = { hooks: [hook('beforePlan')] };
  const VAGUE = wait('Intended', 'intended', { target: 'w1' });
  const UNKNOWN = wait('ControlPlaneUnknown', 'control-plane', { target: 'w1' });
  const HOOK = {
    ...VAGUE,
    gate: 'hooks',
    reason: {
      code: 'HookRunning',
      message: 'the hook backup of UpgradePolicy careful must succeed for w1: Job hooks/x runs',
    },
    ends: 'the hook has succeeded, or its deadline of 1 min has passed',
    since: later(1000),
  };
  const PLAN_HOOK = {
    ...HOOK,
    reason: {
      code: 'HookRunning',
      message:
        'the hook backup of UpgradePolicy careful must succeed before the plan starts: Job hooks/x runs',
    },
  };

  test.each<[string, Wait]>([
    ['intended', VAGUE],
    ['signalled', wait('Signalled', 'signalled', { target: 'w1' })],
    ['working', wait('InFlight', 'working', { target: 'w1' })],
    ['verifying', wait('InFlight', 'verifying', { target: 'w1' })],
    ['of an unknown control plane', UNKNOWN],
  ])('a target that is %s waits for the hook that runs', (_title, vague) => {
    expect(shown([vague], { hooks: [OF_TARGET], policy: before })).toEqual([HOOK]);
  });

  test('a plan waits for its hook if this machine could not ask what its gates need', () => {
    const others: HookResult[] = [{ ...OF_TARGET, target: 'w9' }];
    const given = { hooks: [...others, OF_WHOLE_PLAN], policy: beforePlan };
    expect(shown([UNKNOWN], given)).toEqual([PLAN_HOOK]);
    expect(shown([VAGUE], given)).toEqual([VAGUE]);
  });

  test('the wait began with itself if the time of the hook is unknown', () => {
    const hooks = [{ ...OF_TARGET, since: Number.NaN }];
    expect(shown([VAGUE], { hooks, policy: before })).toEqual([{ ...HOOK, since: later(0) }]);
  });

  test.each<[string, Wait, Given]>([
    ['no hook is known', VAGUE, { policy: before }],
    ['the policy has no hooks', VAGUE, { hooks: [OF_TARGET] }],
    [
      'the policy has another hook',
      VAGUE,
      { hooks: [{ ...OF_TARGET, hook: 'other' }], policy: before },
    ],
    [
      'the hook has ended',
      VAGUE,
      { hooks: [{ ...OF_TARGET, state: 'succeeded' }], policy: before },
    ],
    [
      'the hook is of another target',
      VAGUE,
      { hooks: [{ ...OF_TARGET, target: 'w2' }], policy: before },
    ],
    [
      'the hook is after the plan',
      VAGUE,
      { hooks: [OF_WHOLE_PLAN], policy: { hooks: [hook('afterPlan')] } },
    ],
    [
      'the wait has another cause',
      wait('HealthCheckFailing', 'health', { target: 'w1' }),
      { hooks: [OF_TARGET], policy: before },
    ],
    [
      'the wait is of the plan',
      wait('InFlight', 'working'),
      { hooks: [OF_TARGET], policy: before },
    ],
    [
      'the target is not in progress',
      wait('Intended', 'intended', { target: 'w2' }),
      { hooks: [{ ...OF_TARGET, target: 'w2' }], policy: before },
    ],
  ])('a wait stays as it is if %s', (_title, own, given) => {
    expect(shown([own], given)).toEqual([own]);
  });

  test('what could not be asked is not shown if only a hook after the plan runs', () => {
    const given = { hooks: [OF_WHOLE_PLAN], policy: { hooks: [hook('afterPlan')] } };
    expect(shown([UNKNOWN], given)).toEqual([]);
    expect(shown([wait('ControlPlaneUnknown', 'control-plane')], given)).toEqual([]);
  });
});

describe('the time at which a wait ends at the latest', () => {
  const SIGNALLED = wait('Signalled', 'signalled', { target: 'w1' });
  const END = later(5 * MINUTE);

  test.each<[string, Wait, string | undefined]>([
    ['without a time ends with the step of the target', SIGNALLED, END],
    ['that would end later ends with the step', { ...SIGNALLED, until: later(6 * MINUTE) }, END],
    ['that ends earlier keeps its end', { ...SIGNALLED, until: later(MINUTE) }, later(MINUTE)],
    [
      'for a rest keeps its end, because a rest counts against no deadline',
      wait('Resting', 'resting', { target: 'w1', until: later(9 * MINUTE) }),
      later(9 * MINUTE),
    ],
    ['of a target that has not started has no end', SLOT, undefined],
    ['of the plan has no end', OF_PLAN, undefined],
  ])('a wait %s', (_title, given, until) => {
    const [found] = shown([given], { isSent: true });
    expect(found?.until).toBe(until);
  });

  test('a wait of a target whose step has no deadline has no end', () => {
    expect(shown([SIGNALLED])).toEqual([SIGNALLED]);
  });
});

/**
 * Tests the hooks of a policy: which runs are due, what a target reports while it waits, and the effects of their
 * results.
 */

import { expect, test } from 'vitest';
import { buildHook } from '../../../test/support/builders/hooks.ts';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Hook, HookResult, HookState } from '../../hooks/rules.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { TargetFacts } from '../model/facts.ts';
import { type Target, withStages } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { type Command, commandsFor } from '../turn/commands.ts';
import { hookRunOf } from './hook-runs.ts';

const NOW = T0 + HOUR;

function hook(name: string, more: Partial<Hook> = {}): Hook {
  return buildHook(name, 'beforeDrain', { timeoutMs: 10 * MINUTE, ...more });
}

interface Scene {
  readonly hooks?: readonly Hook[];
  readonly targets?: readonly Target[];
  readonly facts?: Readonly<Record<string, Partial<TargetFacts>>>;
  /** The state of the run of each hook for w1; undefined for a process that carries out no hooks. */
  readonly results?: Readonly<Record<string, HookState>>;
  readonly isLeader?: boolean;
  readonly policy?: Partial<RolloutPolicy>;
  readonly retries?: ReadonlyMap<string, number>;
  readonly lacksRoles?: true;
}

const FRESH = later(HOUR - MINUTE / 2);
const intended = (name: string, since = FRESH): Target => buildTarget(name, 'intended', { since });
const INTENDED = intended('w1', FRESH);

const EMPTY = buildStage('worker', []);

function scene({ targets = [INTENDED], isLeader = true, ...given }: Scene) {
  const { hooks = [hook('backup')], facts = { w1: {} }, results = {}, policy } = given;
  const roles = given.lacksRoles === true ? { lacksRoles: true as const } : {};
  const rollout = buildRollout([buildStage('worker', targets, { maxInFlight: 2, ...roles })]);
  const controls = { ...NO_CONTROLS, retries: given.retries ?? new Map<string, number>() };
  const snapshot = withParts(buildSnapshot(rollout, facts), { plan: { controls } });
  const [{ stage, target } = { stage: EMPTY, target: INTENDED }] = withStages(rollout);
  const known = hooks.flatMap((each): HookResult[] => {
    const state = results[each.name];
    const { id } = hookRunOf({ snapshot, stage, target }, each);
    const found = { id, hook: each.name, target: target.name, since: NOW - MINUTE };
    return state ? [{ ...found, state, message: `it is ${state}` }] : [];
  });
  const settings = buildPolicy({ name: 'careful', hooks, ...policy });
  const assessment = assess(
    withParts(snapshot, { outside: { hooks: isLeader ? known : undefined } }),
    settings,
    NOW,
  );
  return { assessment, stage, target };
}

function due(given: Scene): string[] {
  return commandsFor(scene(given).assessment)
    .filter((each): each is Extract<Command, { kind: 'hooks' }> => each.kind === 'hooks')
    .flatMap((each) => each.due.map((run) => `${run.hook.name} for ${run.node}`));
}

function said(given: Scene): string {
  const { assessment, stage, target } = scene(given);
  const { effect, next, reason } = assessment.of(stage, target);
  return `${next ?? effect}: ${reason.code}: ${reason.message}`;
}

const NAME = 'the hook backup of UpgradePolicy careful';
const AFTER = [hook('backup', { when: 'afterVerified' })];
const DONE = { w1: { observation: succeeded(), watchedMs: 0 } };

test.each<[string, Scene, string]>([
  [
    'known',
    { results: { backup: 'running' } },
    `none: HookRunning: ${NAME} must succeed for w1: it is running`,
  ],
  [
    'succeeded',
    { results: { backup: 'succeeded' } },
    'signal: Intended: w1 is about to be signalled',
  ],
  [
    'failed',
    { results: { backup: 'failed' } },
    `failed: HookFailed: w1: ${NAME} failed: it is failed`,
  ],
  [
    'failed, and ignored',
    { hooks: [hook('backup', { ignoresFailure: true })], results: { backup: 'failed' } },
    'signal: Intended: w1 is about to be signalled',
  ],
  [
    'succeeded after nine minutes, within its time',
    {
      results: { backup: 'succeeded' },
      targets: [intended('w1', later(HOUR - 9 * MINUTE))],
    },
    'signal: Intended: w1 is about to be signalled',
  ],
  [
    'succeeded long ago: the attempt is renewed, and with it the hook',
    { results: { backup: 'succeeded' }, targets: [intended('w1', later(0))] },
    'intended: Intended: w1 is about to be signalled',
  ],
  [
    'running after the upgrade',
    { hooks: AFTER, facts: DONE, results: { backup: 'running' } },
    `verify: HookRunning: ${NAME} must succeed for w1: it is running`,
  ],
  [
    'succeeded after the upgrade',
    { hooks: AFTER, facts: DONE, results: { backup: 'succeeded' } },
    'done: Completed: w1 is done',
  ],
  [
    'failed after the upgrade',
    { hooks: AFTER, facts: DONE, results: { backup: 'failed' } },
    `failed: HookFailed: w1: ${NAME} failed: it is failed`,
  ],
])('a hook that is %s', (_what, given, expected) => {
  expect(said(given)).toBe(expected);
});

test.each<[string, Scene, string[]]>([
  ['no target has an intent yet: the intent comes first', { targets: [buildTarget('w1')] }, []],
  ['an intent is recorded', {}, ['backup for w1']],
  ['the run has ended', { results: { backup: 'succeeded' } }, []],
  ['the plan is paused', { policy: { paused: true } }, []],
  [
    'two hooks: the second comes after the first',
    { hooks: [hook('backup'), hook('tell')] },
    ['backup for w1'],
  ],
  [
    'the first of two has succeeded',
    { hooks: [hook('backup'), hook('tell')], results: { backup: 'succeeded' } },
    ['tell for w1'],
  ],
  [
    'as many targets as slots run hooks, and no more',
    {
      targets: [INTENDED, intended('w2', FRESH), buildTarget('w3'), buildTarget('w4')],
      facts: { w1: {}, w2: {}, w3: {}, w4: {} },
    },
    ['backup for w1', 'backup for w2'],
  ],
  ['the upgrade is not verified yet', { hooks: AFTER }, []],
  ['the upgrade is verified', { hooks: AFTER, facts: DONE }, ['backup for w1']],
  [
    'the upgraded node is not Ready',
    { hooks: AFTER, facts: { w1: { ...DONE.w1, ready: false } } },
    [],
  ],
])('the runs of hooks that are due if %s', (_what, given, expected) => {
  expect(due(given)).toEqual(expected);
});

test('a command, which carries out no hooks, names the Job', () => {
  const { assessment, stage, target } = scene({ isLeader: false });
  const { hookRun, reason } = assessment.of(stage, target);
  expect(reason.message).toBe(`${NAME} must succeed for w1: it runs as Job hooks/${hookRun?.id}`);
});

test('leaders give a run the same name, and a retry gives it another one', () => {
  const nameOf = (given: Scene): string | undefined => {
    const { assessment, stage, target } = scene(given);
    return assessment.of(stage, target).hookRun?.id;
  };
  const id = nameOf({});
  expect(id).toMatch(/^refit-backup-[0-9a-f]{20}$/);
  expect(nameOf({ isLeader: false })).toBe(id);
  expect(nameOf({ targets: [intended('w1', later(HOUR))] })).not.toBe(id);
  expect(nameOf({ retries: new Map([['w1', NOW - 1000]]) })).not.toBe(id);
  expect(nameOf({ retries: new Map([['w1', T0]]) })).toBe(id);
});

test('a run knows its node, its plan and both versions', () => {
  const { assessment, stage, target } = scene({ facts: { w1: { version: 'v1.35.0' } } });
  expect(assessment.of(stage, target).hookRun?.variables).toMatchObject({
    REFIT_NODE: 'w1',
    REFIT_FROM_VERSION: 'v1.35.0',
    REFIT_TO_VERSION: stage.version,
    REFIT_ATTEMPT: FRESH,
    REFIT_HOOK: 'backup',
    REFIT_ROLE: 'worker',
  });
});

test('a run for a plan without roles calls its target a node', () => {
  const { assessment, stage, target } = scene({ lacksRoles: true });
  expect(assessment.of(stage, target).hookRun?.variables['REFIT_ROLE']).toBe('node');
});

test('a run of a target with a signal knows the version of the signal, not that of an edit', () => {
  const { assessment, stage, target } = scene({ facts: { w1: { asked: 'v1.35.9' } } });
  expect(assessment.of(stage, target).hookRun?.variables['REFIT_TO_VERSION']).toBe('v1.35.9');
});

/** Tests which results of hooks a turn needs, what each run knows, and how long the end of a plan starts hooks. */
import { expect, test } from 'vitest';
import { buildHook } from '../../../test/support/builders/hooks.ts';
import { working } from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Hook, HookMoment } from '../../hooks/rules.ts';
import { assess } from '../assess/assess.ts';
import { failedPlanHooks, hookRunOf, planHookRuns } from '../gates/hook-runs.ts';
import type { Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import { hooksOf, settledNames } from './choose-hooks.ts';
import { dueAfterPlan } from './hooks-after-plan.ts';

function hook(name: string, when: HookMoment, more: Partial<Hook> = {}): Hook {
  return buildHook(name, when, { timeoutMs: 10 * MINUTE, ...more });
}

const FIRST = hook('first', 'beforePlan');
const BACKUP = hook('backup', 'beforeDrain');
const CHECK = hook('check', 'afterVerified');
const LAST = hook('last', 'afterPlan');

const REPORTED: Observation = {
  kind: 'succeeded',
  attempt: later(0),
  since: later(0),
  report: { from: 'v1.34.0' },
};

interface Scene {
  readonly hooks?: readonly Hook[];
  readonly states?: Readonly<Record<string, RecordedState>>;
  readonly facts?: Readonly<Record<string, KnownFacts>>;
  readonly rollout?: Partial<Rollout>;
  readonly parts?: SnapshotChanges;
  readonly now?: number;
}

function assessmentOf({ hooks = [FIRST, BACKUP, CHECK, LAST], states = {}, ...more }: Scene) {
  const { facts, rollout, parts, now = T0 } = more;
  const targets = Object.entries(states).map(([name, state]) => buildTarget(name, state));
  const stage = buildStage('worker', targets, { maxInFlight: 2 });
  const snapshot = withParts(buildSnapshot(buildRollout([stage], rollout), facts), {
    outside: { hooks: [] },
  });
  return assess(withParts(snapshot, parts), buildPolicy({ name: 'careful', hooks }), now);
}

/** Returns the command with the names of the hooks instead of the names of their runs. */
function commandOf(scene: Scene) {
  const [command] = hooksOf(assessmentOf(scene));
  const nameIn = (id: string): string => /^refit-(.+)-[0-9a-f]+$/.exec(id)?.[1] ?? id;
  return (
    command && {
      due: command.due.map((run) => run.hook.name),
      kept: command.kept.map(nameIn),
      settled: command.settled,
    }
  );
}

test('the results of the hooks of the plan and of the targets in progress are kept', () => {
  const states = {
    w1: 'intended',
    w2: 'pending',
    w3: 'done',
    w4: 'failed',
    w5: 'skipped',
  } as const;
  expect(commandOf({ states })).toEqual({
    due: ['backup'],
    kept: ['first', 'last', 'backup', 'check'],
    settled: ['w4', 'w3'],
  });
});

test('a target that leaves its intent starts no hook', () => {
  const states = { w1: 'intended' } as const;
  const parts = { plan: { claim: 'ours' } };
  const old = assessmentOf({ states, parts, hooks: [BACKUP], facts: { w1: { exists: false } } });
  expect(hooksOf(old).flatMap(({ due }) => due)).toEqual([]);
});

test('the hook before the plan is due once for all targets that wait for it', () => {
  const states = { w1: 'pending', w2: 'pending' } as const;
  expect(commandOf({ states })?.due).toEqual(['first']);
  expect(commandOf({ states, hooks: [BACKUP] })?.due).toEqual([]);
});

test('an ended plan keeps only the results of its own hooks', () => {
  const scene: Scene = { states: { w1: 'failed', w2: 'intended' }, rollout: { phase: 'failed' } };
  expect(commandOf(scene)).toEqual({ due: [], kept: ['first', 'last'], settled: ['w1'] });
});

test('a policy without hooks and a record that cannot be read give no command', () => {
  expect(hooksOf(assessmentOf({ hooks: [] }))).toEqual([]);
  const unread = because('CannotDecide', 'a status shard is missing');
  expect(hooksOf(assessmentOf({ rollout: { unread } }))).toEqual([]);
});

test('the settled targets are those that failed or are done', () => {
  const names = { a: 'failed', b: 'done', c: 'pending', d: 'missing', e: 'intended' } as const;
  expect(settledNames(assessmentOf({ states: names }).snapshot.rollout)).toEqual(['a', 'b']);
});

const DONE: Scene = {
  hooks: [LAST],
  states: { w1: 'done' },
  rollout: { phase: 'done' },
};

test.each<[string, Scene, number]>([
  ['an hour and the time of the hook', DONE, HOUR + 10 * MINUTE],
  ['not the time of another hook', { ...DONE, hooks: [LAST, BACKUP] }, HOUR + 10 * MINUTE],
  ['23 hours at most', { ...DONE, hooks: [{ ...LAST, timeoutMs: 99 * HOUR }] }, 23 * HOUR],
])('a leader starts the hook after a plan within %s after its end', (_title, scene, limitMs) => {
  const dueAt = (now: number): number => dueAfterPlan(assessmentOf({ ...scene, now })).length;
  expect([dueAt(T0 + limitMs - 1), dueAt(T0 + limitMs)]).toEqual([1, 0]);
});

test('a stage without targets does not keep the hook after the plan from its run', () => {
  const { snapshot, ...rest } = assessmentOf(DONE);
  const stages = [...snapshot.rollout.stages, buildStage('worker', [], { command: 1 })];
  const rollout = { ...snapshot.rollout, stages };
  expect(dueAfterPlan({ ...rest, snapshot: { ...snapshot, rollout } })).toHaveLength(1);
});

test('a process that carries out no hooks sees the hook after the plan as due', () => {
  expect(
    dueAfterPlan(assessmentOf({ ...DONE, parts: { outside: { hooks: undefined } } })),
  ).toHaveLength(1);
});

test('a run for the plan knows each version once, and its namespace', () => {
  const stages = ['v1.36.0', '', 'v1.37.0', 'v1.36.0'].map((version, command) =>
    buildStage('worker', [`w${command}`], { version, command }),
  );
  const source = { ...buildRollout([]).source, namespace: 'upgrades' };
  const snapshot = buildSnapshot(buildRollout(stages, { source }));
  const [run] = planHookRuns(snapshot, { hooks: [FIRST, LAST] }, 'beforePlan');
  expect(run?.variables).toMatchObject({
    REFIT_TO_VERSION: 'v1.36.0, v1.37.0',
    REFIT_PLAN_NAMESPACE: 'upgrades',
  });
  const retried = withParts(snapshot, {
    plan: { controls: { ...snapshot.plan.controls, hooksRetried: later(HOUR) } },
  });
  const [again] = planHookRuns(retried, { hooks: [FIRST] }, 'beforePlan');
  expect(again?.variables['REFIT_ATTEMPT']).toBe(later(HOUR));
  expect(
    planHookRuns(buildSnapshot(buildRollout(stages)), { hooks: [FIRST] }, 'beforePlan')[0]
      ?.variables['REFIT_PLAN_NAMESPACE'],
  ).toBe('');
  expect(planHookRuns(snapshot, {}, 'beforePlan')).toEqual([]);
});

test.each<[string, Hook, KnownFacts, string]>([
  [
    'before the drain, from the kubelet',
    BACKUP,
    { version: 'v1.35.0', earlierVersion: 'v1.34.0' },
    'v1.35.0',
  ],
  ['before the drain, unknown', BACKUP, {}, ''],
  [
    'after the upgrade, from its record',
    CHECK,
    { version: 'v1.36.0', earlierVersion: 'v1.35.0' },
    'v1.35.0',
  ],
  [
    'after the upgrade, from the report of the node',
    CHECK,
    { version: 'v1.36.0', observation: REPORTED },
    'v1.34.0',
  ],
  ['after the upgrade, unknown', CHECK, { version: 'v1.36.0' }, ''],
])('the earlier version that a run knows: %s', (_title, given, facts, expected) => {
  const { snapshot, stage } = assessmentOf({ states: { w1: 'intended' }, facts: { w1: facts } });
  const target = stage?.targets[0];
  const run = stage && target && hookRunOf({ snapshot, stage, target }, given);
  expect(run?.variables['REFIT_FROM_VERSION']).toBe(expected);
  expect(run?.variables['REFIT_PLAN_NAMESPACE']).toBe('');
});

test('a retry at the time of the attempt is the same attempt', () => {
  const retries = new Map([['w1', T0]]);
  const { snapshot, stage } = assessmentOf({
    states: { w1: 'intended' },
    facts: { w1: { observation: working('Restart') } },
  });
  const target = stage?.targets[0];
  const retried = withParts(snapshot, {
    plan: { controls: { ...snapshot.plan.controls, retries } },
  });
  if (!stage || !target) throw new Error('the plan has one target');
  expect(hookRunOf({ snapshot: retried, stage, target }, BACKUP).id).toBe(
    hookRunOf({ snapshot, stage, target }, BACKUP).id,
  );
});

test('only failed hooks whose failure counts can be tried again, those after a plan once it is done', () => {
  const lenient = hook('lenient', 'afterPlan', { ignoresFailure: true });
  const hooks = [FIRST, LAST, lenient];
  const failedIn = (phase: 'running' | 'done', state: 'failed' | 'succeeded'): string[] => {
    const { snapshot } = assessmentOf({ hooks, states: { w1: 'done' }, rollout: { phase } });
    const known = planHookRuns(snapshot, { hooks }, 'beforePlan', 'afterPlan').map(
      ({ id, hook: { name } }) => ({
        id,
        hook: name,
        state,
        message: 'x',
        since: T0,
      }),
    );
    return failedPlanHooks(withParts(snapshot, { outside: { hooks: known } }), { hooks });
  };
  expect(failedIn('running', 'failed')).toEqual(['first']);
  expect(failedIn('done', 'failed')).toEqual(['last']);
  expect(failedIn('done', 'succeeded')).toEqual([]);
});

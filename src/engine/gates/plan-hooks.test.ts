/**
 * Tests hooks for the whole plan: which runs are due before its first node and after its end, and the effects of their
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
import type { Hook, HookMoment, HookState } from '../../hooks/rules.ts';
import { assess } from '../assess/assess.ts';
import { explain } from '../explain/explain.ts';
import { type Controls, NO_CONTROLS } from '../model/controls.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { RolloutPhase, Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { planHookFailures, planHookMemory } from '../report/failed-plan-hooks.ts';
import { commandsFor } from '../turn/commands.ts';
import { planHookRuns } from './hook-runs.ts';

function hook(name: string, when: HookMoment, more: Partial<Hook> = {}): Hook {
  return buildHook(name, when, { timeoutMs: 10 * MINUTE, ...more });
}

interface Scene {
  readonly hooks?: readonly Hook[];
  readonly phase?: RolloutPhase;
  readonly targets?: readonly Target[];
  readonly facts?: Readonly<Record<string, Partial<TargetFacts>>>;
  /** The known state of the run of each hook. */
  readonly results?: Readonly<Record<string, HookState>>;
  readonly controls?: Partial<Controls>;
  readonly policy?: Partial<RolloutPolicy>;
  readonly now?: number;
}

const BEFORE = [hook('backup', 'beforePlan')];
const AFTER = [hook('report', 'afterPlan')];
const PENDING = [buildTarget('w1'), buildTarget('w2')];
const DONE = [buildTarget('w1', 'done', { since: later(0) })];

function scene({
  hooks = BEFORE,
  targets = PENDING,
  results = {},
  now = T0 + MINUTE,
  ...given
}: Scene) {
  const { phase = 'running', facts = {}, policy } = given;
  const stage = buildStage('worker', targets, { maxInFlight: 2 });
  const rollout = { ...buildRollout([stage]), phase };
  const known = Object.fromEntries(targets.map(({ name }) => [name, facts[name] ?? {}]));
  const controls = { ...NO_CONTROLS, ...given.controls };
  const settings = buildPolicy({ name: 'careful', hooks, ...policy });
  const snapshot = withParts(buildSnapshot(rollout, known), { plan: { controls } });
  const runs = planHookRuns(snapshot, settings, 'beforePlan', 'afterPlan');
  const found = runs.flatMap(({ id, hook: { name } }) => {
    const state = results[name];
    return state ? [{ id, hook: name, state, message: `it is ${state}`, since: T0 }] : [];
  });
  return assess(withParts(snapshot, { outside: { hooks: found } }), settings, now);
}

/**
 * Returns the commands of the first turn. If that turn records something, for example that a gate blocks the plan,
 * returns the commands of the second turn instead.
 */
function commands(given: Scene) {
  const assessment = scene(given);
  const all = commandsFor(assessment);
  const record = all.find((each) => each.kind === 'record');
  if (!record) return all;
  const { snapshot, policy, now } = assessment;
  return commandsFor(assess({ ...snapshot, rollout: record.rollout }, policy, now));
}

function due(given: Scene): string[] {
  return commands(given).flatMap((each) =>
    each.kind === 'hooks' ? each.due.map((run) => `${run.hook.name} for ${run.node ?? 'all'}`) : [],
  );
}

test.each([
  [
    'refit retry runs it again',
    undefined,
    'somebody runs refit retry plan, which runs the hook again, or somebody removes the hook from the policy',
  ],
  [
    'only another run of the program runs it again',
    'run the program again',
    'somebody removes the hook from the policy; to run the hook again, abort the plan and run the program again',
  ],
])('a failed hook before the plan says what ends its wait: %s', (_name, retriedBy, ends) => {
  const { snapshot, policy, now } = scene({ results: { backup: 'failed' } });
  const { name } = snapshot.rollout.source;
  const { waits } = explain(assess(withParts(snapshot, { abilities: { retriedBy } }), policy, now));
  expect(waits[0]?.ends).toBe(ends.replace('refit retry plan', `refit retry ${name}`));
});

test.each<[string, Scene, string[]]>([
  ['no node has started', {}, ['backup for all']],
  ['the run goes on', { results: { backup: 'running' } }, ['backup for all']],
  ['it has succeeded', { results: { backup: 'succeeded' } }, []],
  ['it has failed', { results: { backup: 'failed' } }, []],
  ['the plan is paused', { policy: { paused: true } }, []],
  ['the plan was aborted', { controls: { abort: 'no' } }, []],
  ['a node is intended', { targets: [buildTarget('w1', 'intended'), buildTarget('w2')] }, []],
  [
    'a node is done by this run',
    {
      targets: [buildTarget('w1', 'done'), buildTarget('w2')],
      facts: { w1: { observation: succeeded() } },
    },
    [],
  ],
  [
    'a node was done before this run',
    { targets: [buildTarget('w1', 'done'), buildTarget('w2')] },
    ['backup for all'],
  ],
  [
    'a node was left out before any other could start',
    { targets: [buildTarget('w1', 'skipped'), buildTarget('w2')] },
    ['backup for all'],
  ],
  ['no node can start', { facts: { w1: { ready: false }, w2: { ready: false } } }, []],
  [
    'the second of two hooks follows',
    {
      hooks: [...BEFORE, hook('tell', 'beforePlan')],
      results: { backup: 'succeeded' },
    },
    ['tell for all'],
  ],
  ['the plan runs: its other hook comes later', { hooks: AFTER }, []],
])('the runs of hooks before the plan that are due if %s', (_what, given, expected) => {
  expect(due(given)).toEqual(expected);
});

test.each<[string, Scene, string[]]>([
  ['the plan is done', {}, ['report for all']],
  ['it goes on', { results: { report: 'running' }, now: T0 + 48 * HOUR }, ['report for all']],
  ['it has succeeded', { results: { report: 'succeeded' } }, []],
  ['it has failed', { results: { report: 'failed' } }, []],
  ['a leader sees the end too late', { now: T0 + HOUR + 10 * MINUTE }, []],
  [
    'the time of the hook is long, but its Job may be gone',
    { hooks: [hook('report', 'afterPlan', { timeoutMs: 100 * HOUR })], now: T0 + 23 * HOUR },
    [],
  ],
  [
    'somebody asks for it again',
    { controls: { hooksRetried: later(48 * HOUR) }, now: T0 + 48 * HOUR },
    ['report for all'],
  ],
  ['the plan failed', { phase: 'failed' }, []],
  ['the plan is incomplete', { phase: 'incomplete' }, []],
  ['the plan had no node', { targets: [] }, []],
  [
    'the hook before it failed',
    { hooks: [...AFTER, hook('tell', 'afterPlan')], results: { report: 'failed' } },
    [],
  ],
  [
    'the hook before it failed, and the policy ignores that',
    {
      hooks: [hook('report', 'afterPlan', { ignoresFailure: true }), hook('tell', 'afterPlan')],
      results: { report: 'failed' },
    },
    ['tell for all'],
  ],
])('the runs of hooks after the plan that are due if %s', (_what, given, expected) => {
  const facts = { w1: { observation: succeeded() } };
  expect(due({ hooks: AFTER, phase: 'done', targets: DONE, facts, ...given })).toEqual(expected);
});

test.each<[string, Scene, string[]]>([
  ['runs', { results: { backup: 'running' } }, []],
  ['has succeeded', { results: { backup: 'succeeded' } }, ['w1', 'w2']],
  ['has failed', { results: { backup: 'failed' } }, []],
  [
    'has failed, and the policy ignores that',
    {
      hooks: [hook('backup', 'beforePlan', { ignoresFailure: true })],
      results: { backup: 'failed' },
    },
    ['w1', 'w2'],
  ],
])('which nodes start if the hook before the plan %s', (_what, given, expected) => {
  const started = commandsFor(scene(given)).flatMap((each) =>
    each.kind === 'record'
      ? each.rollout.stages.flatMap(({ targets }) =>
          targets.flatMap(({ name, state }) => (state === 'intended' ? [name] : [])),
        )
      : [],
  );
  expect(started).toEqual(expected);
});

test('a plan whose hook failed waits for a retry, which is named', () => {
  const [first] = explain(scene({ results: { backup: 'failed' } })).waits;
  expect(first).toMatchObject({
    gate: 'hooks-before-plan',
    ofStage: true,
    reason: {
      code: 'PlanHookFailed',
      message:
        'no node starts, because the hook backup of UpgradePolicy careful failed: it is failed',
    },
    ends: expect.stringContaining('refit retry '),
  });
});

test('leaders give a run the same name; a retry, another run and another moment give it another one', () => {
  const idOf = (given: Scene): string | undefined => {
    const { snapshot, policy } = scene(given);
    return planHookRuns(snapshot, policy, 'beforePlan', 'afterPlan')[0]?.id;
  };
  const id = idOf({});
  expect(id).toMatch(/^refit-backup-[0-9a-f]{20}$/);
  expect(idOf({ results: { backup: 'running' }, now: T0 + HOUR })).toBe(id);
  expect(idOf({ controls: { hooksRetried: later(HOUR) } })).not.toBe(id);
  expect(idOf({ hooks: [hook('backup', 'afterPlan')] })).not.toBe(id);
});

test('a run for the plan knows the plan and its version, and no node', () => {
  const { snapshot, policy } = scene({});
  const [run] = planHookRuns(snapshot, policy, 'beforePlan');
  const { source, stages } = snapshot.rollout;
  expect(run?.node).toBeUndefined();
  expect(run?.variables).toEqual({
    REFIT_TO_VERSION: stages[0]?.version,
    REFIT_PLAN: source.name,
    REFIT_PLAN_NAMESPACE: source.namespace ?? '',
    REFIT_PLAN_KIND: source.kind,
    REFIT_RUN: expect.stringContaining(source.uid),
    REFIT_ATTEMPT: source.created,
    REFIT_HOOK: 'backup',
  });
});

test('each failure is reported once, and does not change the end of the plan', () => {
  const failed = scene({
    hooks: AFTER,
    phase: 'done',
    targets: DONE,
    results: { report: 'failed' },
  });
  const memory = planHookMemory();
  const said = 'the hook report of UpgradePolicy careful failed: it is failed';
  expect(planHookFailures(failed)).toMatchObject([{ reason: { message: said } }]);
  expect(memory.at('p', failed).map(({ message }) => message)).toEqual([said]);
  expect(memory.at('p', failed)).toEqual([]);
  expect(commandsFor(failed).filter(({ kind }) => kind !== 'hooks')).toEqual([]);
});

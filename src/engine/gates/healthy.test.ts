/** Tests the health checks of a policy: they prevent targets from starting, and make an upgraded target keep its slot. */

import { expect, test } from 'vitest';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { CheckResult, HealthRules } from '../../health/checks.ts';
import { assess } from '../assess/assess.ts';
import { explain } from '../explain/explain.ts';
import type { RecordedState, Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

const NOW = T0 + HOUR;
const CHECK = { kind: 'daemonSets', name: 'daemonSets', pods: 'all' } as const;

function result(more: Partial<CheckResult> = {}): CheckResult {
  const found = { state: 'failing', message: '3 pods are not Ready; none may be' } as const;
  return { name: 'daemonSets', ...found, since: NOW - MINUTE, at: NOW, ...more };
}

interface Scene {
  readonly state?: RecordedState;
  readonly health?: readonly CheckResult[] | undefined;
  readonly rules?: Partial<HealthRules>;
  readonly policy?: Partial<RolloutPolicy>;
  readonly watchedMs?: number;
}

function assessed({ state = 'pending', health, rules, policy, watchedMs = 0 }: Scene) {
  const stage = buildStage('worker', [buildTarget('w1', state)]);
  const observation = state === 'pending' ? {} : { observation: succeeded(), watchedMs };
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), { w1: observation }), {
    outside: { health },
  });
  const rulesOfPolicy = { checks: [CHECK], ...rules };
  const settings = { name: 'careful', health: rulesOfPolicy, ...policy };
  return assess(snapshot, buildPolicy(settings), NOW);
}

/** Returns the code and the message of the reason why a target does not start yet. */
function before(scene: Scene): string | undefined {
  const [wait] = explain(assessed(scene)).waits;
  return wait && `${wait.reason.code}: ${wait.reason.message}`;
}

const NAME = 'the health check daemonSets of UpgradePolicy careful';

test.each<[string, Scene, string | undefined]>([
  ['a process without a monitor', { health: undefined }, undefined],
  ['no answer yet', { health: [] }, `HealthUnknown: ${NAME} has not answered yet`],
  ['passing', { health: [result({ state: 'passing' })] }, undefined],
  [
    'failing',
    { health: [result()] },
    `HealthCheckFailing: ${NAME} fails: 3 pods are not Ready; none may be`,
  ],
  [
    'unknown',
    { health: [result({ state: 'unknown', message: 'connection refused' })] },
    `HealthUnknown: ${NAME} got no answer: connection refused`,
  ],
  [
    'unknown, which the policy ignores',
    { health: [result({ state: 'unknown' })], rules: { ignoresUnknown: true } },
    undefined,
  ],
  [
    'no answer yet, although the policy ignores unknown ones',
    { health: [], rules: { ignoresUnknown: true } },
    `HealthUnknown: ${NAME} has not answered yet`,
  ],
  [
    'a Job that runs, although the policy ignores unknown checks',
    {
      health: [result({ state: 'unknown', message: 'Job a/b has run for 12 s', isPending: true })],
      rules: { ignoresUnknown: true },
    },
    `HealthUnknown: ${NAME} has not answered yet: Job a/b has run for 12 s`,
  ],
  [
    'passing for too short a time',
    {
      health: [result({ state: 'passing', message: '0 pods are not Ready' })],
      rules: { checks: [{ ...CHECK, forMs: 2 * MINUTE }] },
    },
    `HealthCheckFailing: ${NAME} passes, but has not passed for 2 min yet: 0 pods are not Ready`,
  ],
  [
    'passing for long enough',
    {
      health: [result({ state: 'passing' })],
      rules: { checks: [{ ...CHECK, forMs: MINUTE }] },
    },
    undefined,
  ],
])('before a start: %s', (_title, scene, said) => {
  expect(before(scene)).toBe(said);
});

function after(scene: Scene) {
  const assessment = assessed({ state: 'intended', watchedMs: 5 * MINUTE, ...scene });
  const [stage = buildStage('worker', [])] = assessment.snapshot.rollout.stages;
  const [target = buildTarget('w1')] = stage.targets;
  const { next, reason, gate } = assessment.of(stage, target);
  return { next, code: reason.code, gate };
}

const WAITS = { next: undefined, gate: 'still-healthy' };

test.each<[string, Scene, object]>([
  ['passing since the success', { health: [result({ state: 'passing' })] }, { next: 'done' }],
  [
    'passing before the success only',
    { health: [result({ state: 'passing', at: NOW - 6 * MINUTE })] },
    { ...WAITS, code: 'HealthUnknown' },
  ],
  ['failing', { health: [result()] }, { ...WAITS, code: 'HealthCheckFailing' }],
  ['failing for another node', { health: [result({ nodes: ['w2'] })] }, { next: 'done' }],
  [
    'failing for this node, too',
    { health: [result({ nodes: ['w1', 'w2'] })] },
    { ...WAITS, code: 'HealthCheckFailing' },
  ],
  [
    'failing shorter than the deadline',
    { health: [result({ since: NOW - 9 * MINUTE })], watchedMs: 30 * MINUTE },
    { ...WAITS, code: 'HealthCheckFailing' },
  ],
  [
    'failing for the whole deadline',
    { health: [result({ since: NOW - 10 * MINUTE })], watchedMs: 30 * MINUTE },
    { next: 'failed', code: 'HealthCheckFailing' },
  ],
  [
    'failing since long before the upgrade',
    { health: [result({ since: NOW - HOUR })], watchedMs: 5 * MINUTE },
    { ...WAITS, code: 'HealthCheckFailing' },
  ],
  [
    'unknown for longer than the deadline',
    { health: [result({ state: 'unknown', since: NOW - HOUR })], watchedMs: HOUR },
    { ...WAITS, code: 'HealthUnknown' },
  ],
])('after an upgrade: %s', (_title, scene, expected) => {
  expect(after(scene)).toMatchObject(expected);
});

const READY = { kind: 'readiness', name: 'ready' } as const;
const NOT_READY = {
  health: [result({ name: 'ready', message: 'a blocker' })],
  rules: { checks: [READY] },
};

/** Returns the waits of a plan whose cluster is not ready. */
function waitsOf(stage: Stage, observations: Parameters<typeof buildSnapshot>[1]) {
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), observations), {
    outside: { health: NOT_READY.health },
  });
  const settings = { name: 'careful', health: NOT_READY.rules };
  return explain(assess(snapshot, buildPolicy(settings), NOW)).waits;
}

test('a cluster that is not ready holds a run that has not begun', () => {
  expect(before(NOT_READY)).toBe(
    'HealthCheckFailing: the health check ready of UpgradePolicy careful fails: a blocker',
  );
});

test('the readiness of a cluster does not count on the way back', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'pending')], { goesBack: true });
  expect(waitsOf(stage, { w1: {} })).toEqual([]);
});

test('the readiness of a cluster does not count once a node was upgraded', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'done'), buildTarget('w2', 'pending')]);
  expect(waitsOf(stage, { w1: { observation: succeeded() }, w2: {} })).toEqual([]);
});

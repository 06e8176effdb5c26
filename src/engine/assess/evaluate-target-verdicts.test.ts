/** Tests the evaluation of targets at rest, at work and after their work, and the sentences about them. */
import { describe, expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import {
  failed,
  NONE,
  sent,
  succeeded,
  working,
} from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import {
  buildFacts,
  buildSnapshot,
  type KnownFacts,
} from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { CORDON_ANNOTATION } from '../../drain/cordon-marks.ts';
import { answered } from '../model/asked.ts';
import type { Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Role, Stage, Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { assess, phaseOf } from './assess.ts';
import { isAtRest, touchedIn } from './evaluate-target.ts';
import { stepEnd } from './target-deadlines.ts';

interface Scene {
  readonly state?: RecordedState;
  readonly facts?: KnownFacts;
  readonly others?: readonly Target[];
  readonly role?: Role;
  readonly stage?: Partial<Stage>;
  readonly parts?: SnapshotChanges;
  readonly policy?: Partial<RolloutPolicy>;
  readonly now?: number;
}

function sceneOf({ state = 'intended', facts = {}, others = [], ...more }: Scene) {
  const { role = 'worker', parts, policy = {}, now = T0 } = more;
  const stage = buildStage(role, [buildTarget('n1', state), ...others], more.stage);
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), { n1: facts }), parts);
  const [target = buildTarget('n1')] = stage.targets;
  const assessment = assess(snapshot, buildPolicy({ maxFailures: 1, ...policy }), now);
  return { stage, target, assessment };
}

function evaluationOf(scene: Scene) {
  const { stage, target, assessment } = sceneOf(scene);
  return assessment.of(stage, target);
}

const saidOf = (scene: Scene): string => {
  const { phase, reason } = evaluationOf(scene);
  return `${phase} ${reason.code}: ${reason.message}`;
};

describe('a target at rest', () => {
  const observing = (...names: readonly string[]) => ({ observable: new Set(names) });

  test.each<[string, boolean, Target, KnownFacts, ReadonlySet<string> | undefined]>([
    ['pending without a signal', true, buildTarget('n1'), {}, undefined],
    ['pending with a signal', false, buildTarget('n1'), { observation: sent() }, undefined],
    ['pending without an object', false, buildTarget('n1'), { exists: false }, undefined],
    [
      'pending, while its objects show nothing',
      true,
      buildTarget('n1'),
      { exists: false },
      new Set(),
    ],
    [
      'pending with a signal that its objects show',
      false,
      buildTarget('n1'),
      { observation: sent() },
      new Set(['n1']),
    ],
    ['intended', false, buildTarget('n1', 'intended'), {}, new Set()],
    ['done', true, buildTarget('n1', 'done'), { observation: succeeded() }, new Set(['n1'])],
  ])('%s: %s', (_title, expected, target, facts, observable) => {
    const stage = buildStage('worker', [target]);
    const { targets } = buildSnapshot(buildRollout([stage]), { n1: facts });
    const [known = target] = stage.targets;
    expect(isAtRest({ targets: { ...targets, observable } }, known)).toBe(expected);
  });

  test('has its recorded state as its phase', () => {
    const { assessment, stage, target } = sceneOf({ state: 'pending' });
    expect(phaseOf(assessment, stage, target)).toBe('pending');
  });

  test('is left out of a turn unless its Node has a mark of Refit', () => {
    const stage = buildStage('worker', [
      buildTarget('done', 'done'),
      buildTarget('cordoned', 'done'),
      buildTarget('tainted', 'done'),
      buildTarget('waiting'),
      buildTarget('signalled'),
      buildTarget('working', 'intended'),
      buildTarget('failed', 'failed'),
    ]);
    const taint = { key: 'upgrade.refit.dev/pending', effect: 'PreferNoSchedule', value: 'us' };
    const fleet = [
      buildNode('done'),
      buildNode('cordoned', { annotations: { [CORDON_ANNOTATION]: 'us' } }),
      { ...buildNode('tainted'), spec: { taints: [taint] } },
    ];
    const base = withParts(buildSnapshot(buildRollout([stage])), { cluster: { fleet } });
    const namesIn = (snapshot: typeof base) =>
      touchedIn(snapshot).flatMap(({ targets }) => targets.map(({ name }) => name));
    const { observable } = observing('signalled');
    expect(namesIn({ ...base, targets: { ...base.targets, observable } })).toEqual([
      'cordoned',
      'tainted',
      'signalled',
      'working',
      'failed',
    ]);
    // If nobody knows which objects show something, each target is checked.
    expect(namesIn({ ...base })).toHaveLength(7);
  });
});

describe('a target at work', () => {
  const AGENT = { ours: true, title: 'Refit 0.9.0' };

  test.each<[string, KnownFacts, string]>([
    [
      'of an agent',
      { observation: sent(), agent: AGENT },
      'signalled Signalled: n1 is signalled; its agent has not answered yet',
    ],
    [
      'without an agent',
      { observation: sent() },
      'signalled Signalled: n1 is signalled; its work has not begun yet',
    ],
    ['at a step', { observation: working('Restart') }, 'working InFlight: n1 is at Restart'],
    [
      'that does not continue',
      { observation: { ...working('Restart'), stalled: 'its disk is full' } as Observation },
      'working Stalled: n1 is at Restart: its disk is full',
    ],
  ])('%s says so', (_title, facts, expected) => {
    expect(saidOf({ facts })).toBe(expected);
  });

  test('that drains itself is asked again whether it lets the leader drain it', () => {
    const waiting = { ...working('Cordoning'), waitsFor: 'drain' } as Observation;
    const own = answered(false);
    expect(evaluationOf({ facts: { observation: waiting, drainDelegation: own } })).toEqual({
      phase: 'working',
      effect: 'none',
      reason: { code: 'InFlight', message: 'n1 is at Cordoning' },
      recheckMs: 10_000,
    });
    const busy = working('Restart');
    expect(evaluationOf({ facts: { observation: busy, drainDelegation: own } })).not.toHaveProperty(
      'recheckMs',
    );
    expect(evaluationOf({ facts: { observation: busy, drainDelegation: answered(true) } })).toEqual(
      {
        phase: 'working',
        effect: 'none',
        reason: { code: 'InFlight', message: 'n1 is at Restart' },
      },
    );
  });

  test('says of a refused write that its node action waits for the API server', () => {
    const refusal = { reason: because('TargetRefused', 'a webhook says no'), recheckMs: 5000 };
    const facts: KnownFacts = {
      observation: { ...working('Cordoning'), waitsFor: 'drain' } as Observation,
      drainDelegation: answered(true),
      node: { name: 'n1', unschedulable: false, cordonOwner: undefined, taintOwner: undefined },
    };
    const free = evaluationOf({ facts });
    expect(free.nodeAction).toMatchObject({ kind: 'cordon' });
    expect(free.gate).toBeUndefined();
    expect(evaluationOf({ facts: { ...facts, refusal } })).toEqual({
      ...free,
      gate: 'write',
      reason: refusal.reason,
      ends: 'the API server allows the change: see its admission policies and webhooks, and the rights of Refit',
    });
    const busy = evaluationOf({ facts: { observation: working('Restart'), refusal } });
    expect(busy.gate).toBeUndefined();
  });
});

describe('a failed target whose roll-back did not work', () => {
  const observation = { ...failed('no'), report: { rolledBack: false } } as Observation;
  const others = [buildTarget('n2')];

  test('keeps its slot while others wait, and says what ends that', () => {
    expect(evaluationOf({ facts: { observation }, others })).toEqual({
      phase: 'working',
      effect: 'none',
      reason: { code: 'TargetFailed', message: 'n1: no' },
      ends: 'n1 is not Ready, or its deadline passes',
    });
  });

  test.each<[string, Scene]>([
    ['nobody waits', { others: [] }],
    ['nothing new starts', { policy: { maxFailures: 0 } }],
    [
      'it was rolled back',
      { facts: { observation: { ...observation, report: { rolledBack: true } } as Observation } },
    ],
  ])('is recorded as failed if %s', (_title, more) => {
    const found = evaluationOf({ facts: { observation }, others, ...more });
    expect(found).toMatchObject({ phase: 'failed', next: 'failed' });
  });
});

describe('a drain that took too long', () => {
  const observation = { ...failed('too long'), late: 'drain' } as Observation;
  const drain = { ...buildPolicy().drain, onDeadline: 'skipNode' } as const;
  const skipping: Scene = {
    facts: { observation },
    policy: { drain },
    parts: { abilities: { canSkip: true } },
  };

  test.each<[string, Scene, RecordedState]>([
    ['of a worker skips the node', skipping, 'skipped'],
    ['of a controller fails', { ...skipping, role: 'controller' }, 'failed'],
    ['fails if the record cannot contain skipped targets', { ...skipping, parts: {} }, 'failed'],
    ['fails if the policy does not skip nodes', { ...skipping, policy: {} }, 'failed'],
    [
      'is not meant by another failure',
      { ...skipping, facts: { observation: failed('no') } },
      'failed',
    ],
  ])('%s', (_title, scene, state) => {
    expect(evaluationOf(scene)).toMatchObject({ phase: state, next: state });
  });
});

describe('a target whose work has succeeded', () => {
  const READY_MS = 10 * MINUTE;
  const done: KnownFacts = { observation: succeeded() };

  test('is done once its verifiers pass', () => {
    expect(evaluationOf({ facts: done })).toEqual({
      phase: 'verifying',
      effect: 'verify',
      next: 'done',
      reason: { code: 'Completed', message: 'n1 is done' },
      ends: 'the leader records it',
    });
  });

  test.each([
    ['before the deadline', READY_MS - 1, undefined],
    ['at the deadline', READY_MS, 'failed'],
  ])('fails if its Node is not Ready %s', (_title, watchedMs, next) => {
    const facts = { ...done, ready: false, readySince: later(0), watchedMs };
    expect(evaluationOf({ facts, now: T0 + READY_MS }).next).toBe(next);
  });

  test.each([
    ['before the deadline', READY_MS - 1, undefined],
    ['at the deadline', READY_MS, 'failed'],
  ])('fails if its kubelet reports another version %s', (_title, watchedMs, next) => {
    const versionGap = { work: 'the Job succeeded', reported: 'v1.35.0', wanted: 'v1.36.0' };
    const facts = { ...done, versionGap, watchedMs };
    expect(evaluationOf({ facts, now: T0 + HOUR }).next).toBe(next);
  });

  const health = { checks: [{ kind: 'daemonSets', name: 'pods', pods: 'all' }] } as const;

  test.each<[string, number, 'failing' | 'passing', number, string | undefined]>([
    ['for less than the deadline', READY_MS - 1, 'failing', 2 * HOUR, undefined],
    ['for the deadline', READY_MS, 'failing', 2 * HOUR, 'failed'],
    ['for the deadline, but this leader has just come', READY_MS, 'failing', 1000, undefined],
    ['no more, but has not passed for long enough', READY_MS, 'passing', 2 * HOUR, undefined],
  ])('fails if a health check fails %s', (_title, now, state, watchedMs, next) => {
    const result = { name: 'pods', state, message: 'too many', since: T0, at: T0 + now };
    const [check] = health.checks;
    const found = evaluationOf({
      facts: { ...done, watchedMs },
      policy: {
        name: 'nightly',
        health: { checks: [{ ...check, forMs: HOUR }] },
        targetDeadlineMs: 9 * HOUR,
      },
      parts: { outside: { health: [result] } },
      now: T0 + now,
    });
    expect(found.reason.code).toBe('HealthCheckFailing');
    expect(found.next).toBe(next);
  });

  test.each([
    ['before the deadline after the rest', 0, HOUR + READY_MS - 1, undefined],
    ['at the deadline after the rest', 0, HOUR + READY_MS, 'failed'],
  ])(
    'that rests misses no deadline before its rest is over: %s',
    (_title, _none, watchedMs, next) => {
      const facts = { ...done, watchedMs };
      const down = [{ name: 'c1', ready: false, detail: '/readyz says 500' }];
      const found = evaluationOf({
        facts,
        stage: { restMs: HOUR },
        role: 'controller',
        parts: { cluster: { controlPlane: answered(down) } },
        now: T0 + 9 * HOUR,
      });
      expect(found.reason.code).toBe('ControlPlaneNotReady');
      expect(found.next).toBe(next);
    },
  );
});

describe('the end of a step by the clock of the node', () => {
  const policy = buildPolicy();
  const target = buildTarget('n1', 'intended', { since: later(MINUTE) });
  const endOf = (observation: Observation): number =>
    stepEnd(target, buildFacts({ observation }), policy) - T0;

  test.each<[string, Observation, number]>([
    ['without a report', NONE, Number.POSITIVE_INFINITY],
    ['with a time that is none', sent('soon'), Number.POSITIVE_INFINITY],
    ['after a signal', sent(later(2 * MINUTE)), 2 * MINUTE + policy.stepDeadlines.answer],
    [
      'after a report that is older than the attempt',
      sent(later(0)),
      MINUTE + policy.stepDeadlines.answer,
    ],
    [
      'with a limit of the node',
      {
        ...working('Restart', later(0), later(2 * MINUTE)),
        part: 'restart',
        limitMs: 5000,
      } as Observation,
      2 * MINUTE + 5000,
    ],
    [
      'with a longer limit of the node',
      {
        ...working('Restart', later(0), later(2 * MINUTE)),
        part: 'restart',
        limitMs: 99 * HOUR,
      } as Observation,
      2 * MINUTE + policy.stepDeadlines.restart,
    ],
    ['without a deadline', working('Restart'), Number.POSITIVE_INFINITY],
  ])('%s', (_title, observation, expected) => {
    expect(endOf(observation)).toBe(expected);
  });
});

/** Tests what people read about one target of a plan, and about its stage. */
import { describe, expect, test } from 'vitest';
import { failed, sent, succeeded, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, SECOND, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { answered } from '../model/asked.ts';
import type { Observation, TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout, Stage, Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { differingTargets, readStages } from './target-reading.ts';

interface Given {
  readonly state?: RecordedState;
  readonly target?: Partial<Target>;
  readonly stage?: Partial<Stage>;
  readonly rollout?: Partial<Rollout>;
  readonly policy?: Partial<RolloutPolicy>;
  readonly upcoming?: Partial<Rollout>;
}

/** The version of the plan, and an earlier one. */
const NEW = 'v1.36.3+x.2';
const OLD = 'v1.36.1+x.0';
const NOW = T0 + HOUR;

function assessmentOf(facts: Partial<TargetFacts>, given: Given) {
  const target = buildTarget('w1', given.state ?? 'pending', given.target);
  const rollout = buildRollout([buildStage('worker', [target], given.stage)], given.rollout);
  const policy = buildPolicy({ name: 'careful', ...given.policy });
  return assess(buildSnapshot(rollout, { w1: facts }), policy, NOW);
}

/** Reads the worker w1. By default it is pending, and nothing is known about it. */
function read(facts: Partial<TargetFacts> = {}, given: Given = {}) {
  const assessment = assessmentOf(facts, given);
  const [stage] = readStages(assessment, { ...assessment.snapshot.rollout, ...given.upcoming });
  const [target] = stage?.targets ?? [];
  if (target === undefined) throw new Error('the plan has no target');
  return target;
}

describe('a stage', () => {
  const stagesOf = (stages: readonly Stage[], more: Partial<Rollout> = {}) => {
    const assessment = assess(buildSnapshot(buildRollout(stages, more)), buildPolicy(), NOW);
    return readStages(assessment, assessment.snapshot.rollout);
  };

  test('says how many targets may be in progress, and whether failed ones keep their slots', () => {
    const [first, second] = stagesOf([
      buildStage('controller', ['c1'], { maxInFlight: 3 }),
      buildStage('worker', ['w1'], { maxInFlight: 3, failedHoldSlots: true, command: 1 }),
    ]);
    expect(first).toMatchObject({ role: 'controller', maxInFlight: 1, failedHoldSlots: false });
    expect(second).toMatchObject({ role: 'worker', maxInFlight: 3, failedHoldSlots: true });
  });

  test('is the active one if it is the first that has not ended, until the plan ends', () => {
    const stages = [buildStage('controller', ['c1']), buildStage('worker', ['w1'])];
    const active = (more: Partial<Rollout>) =>
      stagesOf(stages, more).map(({ isActive }) => isActive);
    expect(active({})).toEqual([true, false]);
    expect(active({ phase: 'failed' })).toEqual([false, false]);
  });

  test.each<[string, readonly string[], Partial<Rollout>, string | undefined]>([
    ['if no Node matches it', [], {}, 'pool=blue'],
    ['not if Nodes match it', ['w1'], {}, undefined],
    ['not of an invalid plan', [], { phase: 'invalid' }, undefined],
    [
      'not if the record was not read',
      [],
      { unread: because('RecordUnread', 'the record cannot be read') },
      undefined,
    ],
  ])('shows its selector %s', (_title, names, more, selection) => {
    const [stage] = stagesOf([buildStage('worker', names, { selection: 'pool=blue' })], more);
    expect(stage?.selection).toBe(selection);
  });
});

test('a target says why it cannot start only if the plan is refused because of its targets', () => {
  const unknown = { platform: undefined };
  expect(read(unknown, { upcoming: { phase: 'incomplete' } }).refusal?.code).toBe(
    'PlatformUnknown',
  );
  expect(read(unknown).refusal).toBeUndefined();
});

describe('whether a target runs the version already', () => {
  test.each<[string, Partial<TargetFacts>, Given, boolean]>([
    ['a pending target whose object says so', { isThere: true }, {}, true],
    ['a target that is done has no need of it', { isThere: true }, { state: 'done' }, false],
    ['a pending target of which only the version is known', { version: NEW }, {}, false],
    ['a failed target with this version', { version: NEW }, { state: 'failed' }, true],
    ['a failed target with another version', { version: OLD }, { state: 'failed' }, false],
    [
      'a failed target with a newer version',
      { version: 'v1.37.0+x.0' },
      { state: 'failed' },
      false,
    ],
    ['a failed target without a version', {}, { state: 'failed' }, false],
    [
      'a failed target whose work has succeeded',
      { observation: succeeded() },
      { state: 'failed' },
      true,
    ],
    [
      'a failed target whose work has succeeded, and that shows the part of a release',
      { observation: succeeded(), version: 'v1.36.3+x' },
      { state: 'failed' },
      true,
    ],
    [
      'a failed target whose work has succeeded, and that shows an older version',
      { observation: succeeded(), version: OLD },
      { state: 'failed' },
      false,
    ],
    [
      'a failed target that shows the Kubernetes version of its release',
      { version: 'v1.36.3' },
      { state: 'failed', stage: { kubernetesVersion: 'v1.36.3' } },
      true,
    ],
    [
      'a failed target of a stage that keeps the version',
      { version: NEW },
      { state: 'failed', stage: { keepsVersion: true } },
      false,
    ],
    [
      'a failed target that is upgraded in any case',
      { version: NEW },
      { state: 'failed', stage: { forced: true } },
      false,
    ],
  ])('%s', (_title, facts, given, isThere) => {
    expect(read(facts, given).isThere).toBe(isThere);
  });
});

test('a target had its version before only if it is done', () => {
  const observation = { ...succeeded(), report: { from: NEW } };
  expect(read({ observation }, { state: 'done' }).hadVersion).toBe(true);
  expect(read({ observation }, { state: 'failed' }).hadVersion).toBe(false);
  expect(read({}, { state: 'done' }).hadVersion).toBe(false);
});

test('only a target that has failed says why', () => {
  const facts = { observation: failed('the disk is full') };
  expect(read(facts, { state: 'failed' }).cause?.message).toBe('the disk is full');
  expect(read(facts, { state: 'skipped' }).cause).toBeUndefined();
});

test.each<[string, Partial<TargetFacts>, RecordedState, boolean]>([
  ['was asked to download ahead', { prefetch: 'asked' }, 'pending', true],
  ['must download first', { requiredDownload: { kind: 'asked' } }, 'pending', true],
  ['could download ahead', { prefetch: 'possible' }, 'pending', false],
  ['has downloaded', { requiredDownload: { kind: 'done' } }, 'pending', false],
  ['was asked before its turn', { prefetch: 'asked' }, 'intended', false],
])('a target downloads ahead while it is pending: it %s', (_title, facts, state, fetchesAhead) => {
  expect(read(facts, { state }).fetchesAhead).toBe(fetchesAhead);
});

describe('what keeps a target from starting', () => {
  const hold = { by: 'ada', until: later(2 * HOUR) };
  const labels = { gpu: 'true' };
  const pins = [{ selector: { matchLabels: labels }, version: 'v1.30.2+kit.0' }];
  const policy: Partial<RolloutPolicy> = { pins };

  test.each<[RecordedState, boolean]>([
    ['pending', true],
    ['skipped', true],
    ['intended', false],
    ['done', false],
    ['failed', false],
  ])('a hold and a pin of a target that is %s', (state, isKept) => {
    const { held, pinned } = read({ hold, labels }, { state, policy });
    expect([held, pinned?.code]).toEqual(isKept ? [hold, 'Pinned'] : [undefined, undefined]);
  });

  test('a hold that has ended keeps nothing', () => {
    expect(read({ hold: { until: later(0) } }).held).toBeUndefined();
    expect(read().held).toBeUndefined();
  });
});

test('the zone is that of the label of the Node', () => {
  const zone = (value: string) => read({ labels: { 'topology.kubernetes.io/zone': value } }).zone;
  expect(zone('eu-1a')).toBe('eu-1a');
  expect(zone('')).toBeUndefined();
  expect(read().zone).toBeUndefined();
});

test('the wave is that of the policy, counted from 1', () => {
  expect(read({}, { policy: { waves: [{}] } }).wave).toBe(1);
  expect(read().wave).toBeUndefined();
});

test.each<[string, Observation | undefined, RecordedState, Partial<Target>, string]>([
  ['of a target without a signal is the recorded one', undefined, 'intended', {}, later(0)],
  [
    'of an attempt that is not recorded yet is now',
    undefined,
    'intended',
    { lacksAttempt: true },
    later(HOUR),
  ],
  [
    'of a target in progress is that of its report',
    sent(later(MINUTE)),
    'intended',
    {},
    later(MINUTE),
  ],
  ['of a pending target is that of its report', sent(later(MINUTE)), 'pending', {}, later(MINUTE)],
  [
    'of a target that is done is that of its success',
    succeeded(later(0), later(MINUTE)),
    'done',
    {},
    later(MINUTE),
  ],
  [
    'of a target that was left out is the recorded one',
    sent(later(MINUTE)),
    'skipped',
    {},
    later(0),
  ],
])('the time of the last change %s', (_title, observation, state, target, since) => {
  expect(read(observation && { observation }, { state, target }).since).toBe(since);
});

describe('the work on a target', () => {
  const NODE = { name: 'w1', unschedulable: true, cordonOwner: undefined, taintOwner: undefined };
  const DRAINING: Observation = {
    kind: 'working',
    step: 'Draining',
    attempt: later(0),
    since: later(0),
    waitsFor: 'drain',
    stalled: '',
  };

  const SENT = { kind: 'sent', attempt: later(0), since: later(0) } as const;

  const workOf = (observation: Observation, given: Given = {}, facts: Partial<TargetFacts> = {}) =>
    read({ observation, ...facts }, { state: 'intended', ...given }).work;

  test('without a signal there is none', () => {
    expect(read({}, { state: 'intended' }).work).toBeUndefined();
  });

  test('it has the words of the node', () => {
    const report = { reason: 'the disk is full', spent: { Download: 5 }, rolledBack: true };
    expect(workOf({ ...DRAINING, report, stalled: 'it waits for a lock' })).toEqual({
      kind: 'working',
      step: 'Draining',
      began: later(0),
      spent: { Download: 5 },
      delay: undefined,
      stalled: 'it waits for a lock',
      rolledBack: true,
      etcdSnapshot: undefined,
      rollsBack: undefined,
      drains: undefined,
    });
    expect(workOf(DRAINING)?.stalled).toBeUndefined();
    expect(workOf({ ...SENT, report })?.delay).toBe('the disk is full');
    expect(workOf({ ...SENT, report: { reason: '' } })?.delay).toBeUndefined();
    expect(workOf(sent())).toMatchObject({ kind: 'sent', step: undefined, stalled: undefined });
  });

  test('a target that is done is in no step any more', () => {
    expect(workOf(DRAINING, { state: 'done' })?.step).toBeUndefined();
    expect(workOf(DRAINING, { state: 'failed' })?.step).toBe('Draining');
  });

  test('an attempt after the end of a target belongs to a later run', () => {
    const began = (attempt: string, state: RecordedState) =>
      workOf(succeeded(attempt), { state })?.began;
    expect(began(later(0), 'done')).toBe(later(0));
    expect(began(later(1000), 'done')).toBeUndefined();
    expect(began(later(1000), 'intended')).toBe(later(1000));
  });

  test.each<[string, Partial<TargetFacts>, Given, string | undefined]>([
    ['the leader does', { drainDelegation: answered(true) }, {}, 'leader'],
    ['the leader does if nobody has asked', {}, {}, 'leader'],
    ['the node does', { drainDelegation: answered(false) }, {}, 'node'],
    ['nobody does without a Node', { node: undefined }, {}, undefined],
    ['nobody does before and after a drain', { observation: working('Restart') }, {}, undefined],
    ['nobody does for a target that has failed', {}, { state: 'failed' }, undefined],
    [
      'nobody does if the policy forbids it',
      {},
      { policy: { drain: { ...buildPolicy().drain, enabled: false } } },
      undefined,
    ],
  ])('who cordons and drains the node: %s', (_title, facts, given, drains) => {
    expect(workOf(DRAINING, given, { node: NODE, ...facts })?.drains).toBe(drains);
  });
});

describe('when an agent rolls back', () => {
  const agent = { ours: true, title: 'Refit' };
  const RESTART: Observation = { ...working('Restart'), part: 'restart' } as Observation;
  const after = (seconds: number): string => later(seconds * SECOND);

  const timesOf = (observation: Observation, given: Given = {}, facts: Partial<TargetFacts> = {}) =>
    read({ agent, observation, ...facts }, { state: 'intended', ...given }).work?.rollsBack;

  test('the defaults count, unless the policy has other times', () => {
    expect(timesOf(RESTART)).toEqual({ unanswered: after(90), notReady: after(90 + 120) });
    const policy = { agent: { restartTimeoutMs: 10 * SECOND, soakMs: 10 * MINUTE } };
    expect(timesOf(RESTART, { policy })).toEqual({ unanswered: after(10), notReady: after(610) });
  });

  test.each<[string, Observation, Given, Partial<TargetFacts>]>([
    ['which is not of Refit', RESTART, {}, { agent: { ...agent, ours: false } }],
    ['that does not exist', RESTART, {}, { agent: undefined }],
    ['that works on another part', { ...RESTART, part: 'apply' } as Observation, {}, {}],
    ['that has not begun', sent(), {}, {}],
    ['that rolls back already', { ...RESTART, step: 'RollingBack' } as Observation, {}, {}],
    ['whose time cannot be read', { ...RESTART, since: 'yesterday' } as Observation, {}, {}],
    ['of a target that has failed', RESTART, { state: 'failed' }, {}],
  ])('there are no times for an agent %s', (_title, observation, given, facts) => {
    expect(timesOf(observation, given, facts)).toBeUndefined();
  });
});

describe('a target that runs another version than its stage wants', () => {
  const differs = (facts: Partial<TargetFacts>, given: Given) => {
    const { name, ran, differs } = read(facts, given);
    const others = differingTargets(assessmentOf(facts, given));
    expect(others).toEqual(differs && ran !== undefined ? [{ name, ran }] : []);
    return differs;
  };
  const ENDED: Given = { state: 'done', rollout: { phase: 'done' } };

  test.each<[string, Partial<TargetFacts>, Given, boolean]>([
    [
      'it was signalled with another version',
      { asked: OLD, version: OLD },
      { state: 'done' },
      true,
    ],
    ['it was signalled so, and shows nothing', { asked: OLD }, { state: 'done' }, true],
    ['it is not done', { asked: OLD, version: OLD }, { state: 'intended' }, false],
    ['it stays behind', { isBehind: true, version: OLD }, { state: 'done' }, true],
    ['it is newer since the end', { version: 'v1.36.5+x.0' }, ENDED, true],
    ['it is newer before the end', { version: 'v1.36.5+x.0' }, { state: 'done' }, false],
    ['it shows nothing after the end', {}, ENDED, false],
    [
      'it is newer, and its stage keeps the version',
      { version: 'v1.36.5+x.0' },
      { ...ENDED, stage: { keepsVersion: true } },
      false,
    ],
    [
      'it is newer than the Kubernetes version of its release',
      { version: 'v1.36.1' },
      { ...ENDED, stage: { version: 'v9.0.0', kubernetesVersion: 'v1.36.0' } },
      true,
    ],
  ])('%s', (_title, facts, given, expected) => {
    expect(differs(facts, given)).toBe(expected);
  });

  test('a target that was deleted after its end differs, too', () => {
    const gone = (state: RecordedState) =>
      differingTargets(assessmentOf({ exists: false }, { state }));
    expect(gone('done')).toEqual([{ name: 'w1', ran: undefined }]);
    expect(gone('pending')).toEqual([]);
  });

  test('a later stage with the same version makes no difference, and a pending target has no later version', () => {
    const stagesOf = (first: RecordedState, version: string) => [
      buildStage('worker', [buildTarget('w1', first)]),
      buildStage('worker', [buildTarget('w1', 'done')], { command: 1, version }),
    ];
    const read = (stages: readonly Stage[]) => {
      const snapshot = buildSnapshot(buildRollout(stages), { w1: { version: NEW } });
      const assessment = assess(snapshot, buildPolicy(), NOW);
      return readStages(assessment, snapshot.rollout)[0]?.targets[0];
    };
    expect(read(stagesOf('done', NEW))).toMatchObject({ ran: NEW, differs: false });
    expect(read(stagesOf('done', 'v1.37.0'))).toMatchObject({ ran: 'v1.37.0', differs: true });
    expect(read(stagesOf('pending', 'v1.37.0'))).toMatchObject({ ran: NEW, differs: false });
  });
});

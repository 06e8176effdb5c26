/** Tests the parts of the reading of a plan: its versions, waves, findings and situations. */
import { describe, expect, test } from 'vitest';
import { failed } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { CheckResult } from '../../health/checks.ts';
import type { Hook, HookMoment, HookResult, HookState } from '../../hooks/rules.ts';
import { assess } from '../assess/assess.ts';
import { planHookRuns } from '../gates/hook-runs.ts';
import { answered } from '../model/asked.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout, Stage } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { type ReadingInput, readPlan } from './plan-reading.ts';

interface Given {
  readonly stages?: readonly Stage[];
  readonly rollout?: Partial<Rollout>;
  readonly facts?: Readonly<Record<string, KnownFacts>>;
  readonly parts?: Parameters<typeof withParts<Snapshot>>[1];
  readonly policy?: Partial<RolloutPolicy>;
  readonly input?: Partial<ReadingInput>;
}

function workers(states: readonly RecordedState[], more: Partial<Stage> = {}): Stage {
  const targets = states.map((state, index) => buildTarget(`w${index + 1}`, state));
  return buildStage('worker', targets, more);
}

function snapshotOf({ stages = [workers(['pending'])], rollout, facts, parts }: Given): Snapshot {
  return withParts(buildSnapshot(buildRollout(stages, rollout), facts), parts);
}

function read(given: Given) {
  const policy = buildPolicy({ name: 'careful', maxFailures: 100, ...given.policy });
  return readPlan(assess(snapshotOf(given), policy, T0 + MINUTE), { waits: [], ...given.input });
}

const DONE = { phase: 'done' } as const;
const controls = (more: object) => ({ plan: { controls: { ...NO_CONTROLS, ...more } } });

test('an invalid plan continues by itself only if its channel has not answered', () => {
  const awaits = (phase: Rollout['phase'], code: 'ChannelUnanswered' | 'InvalidPlan') =>
    read({ rollout: { phase, problems: [because(code, 'no')] } }).awaitsChannel;
  expect(awaits('invalid', 'ChannelUnanswered')).toBe(true);
  expect(awaits('invalid', 'InvalidPlan')).toBe(false);
  expect(awaits('running', 'ChannelUnanswered')).toBe(false);
  expect(read({ rollout: { phase: 'invalid' } }).awaitsChannel).toBe(false);
});

test('the cause is that of the end, or that which the leader is about to record, or the first problem', () => {
  const [own, soon, problem] = ['own', 'soon', 'problem'].map((text) => because('Stopped', text));
  const upcoming = { ...buildRollout([]), reason: soon } as Rollout;
  const problems = problem === undefined ? [] : [problem];
  const rollout = { phase: 'failed', reason: own, problems } as Partial<Rollout>;
  expect(read({ rollout, input: { upcoming } }).cause).toMatchObject({ message: 'own' });
  expect(read({ rollout: { problems }, input: { upcoming } }).cause).toMatchObject({
    message: 'soon',
  });
  expect(read({ rollout: { problems } }).cause).toMatchObject({ message: 'problem' });
  expect(read({}).cause).toBeUndefined();
});

describe('the identity of a plan', () => {
  test('the generation is that of the end, once the plan has ended', () => {
    const generation = (rollout: Partial<Rollout>) =>
      read({ rollout, input: { generation: 5 } }).plan.generation;
    expect(generation({ generation: 3 })).toBe(5);
    expect(generation({ ...DONE, generation: 3 })).toBe(3);
    expect(generation(DONE)).toBe(5);
  });

  test('it names the run that it rolls back, if there is one', () => {
    const rollsBack = { rollsBack: 'plan-uid/run-0', rollsBackReason: 'it was slow' };
    expect(read({ rollout: rollsBack }).plan.rollsBack).toEqual({
      run: 'plan-uid/run-0',
      reason: 'it was slow',
    });
    expect(read({}).plan).toMatchObject({ id: 'run-1', rollsBack: undefined });
  });
});

describe('what people want', () => {
  test('a pause of the plan counts before that of its policy', () => {
    const paused = (more: object, policy: Partial<RolloutPolicy>) =>
      read({ parts: controls(more), policy }).controls.paused;
    expect(paused({ paused: true }, { paused: true })).toBe('plan');
    expect(paused({}, { paused: true })).toBe('policy');
    expect(paused({}, {})).toBeUndefined();
  });

  test('the time zone is that of the windows of the policy and of the plan', () => {
    const berlin = { days: [], startMinute: 0, lengthMs: HOUR, timeZone: 'Europe/Berlin' };
    const zone = (policy: Partial<RolloutPolicy>) => read({ policy }).controls.timeZone;
    expect(zone({ windows: [berlin] })).toBe('Europe/Berlin');
    expect(zone({ planWindows: [berlin] })).toBe('Europe/Berlin');
    expect(
      zone({ windows: [{ ...berlin, timeZone: 'UTC' }], planWindows: [berlin] }),
    ).toBeUndefined();
    expect(zone({})).toBeUndefined();
  });

  test('a plan goes on without deleted Nodes if the policy says so and the dialect can', () => {
    const leaves = (leavesOutGone: boolean, canSkip: boolean) =>
      read({ parts: { abilities: { canSkip } }, policy: { leavesOutGone } }).controls.leavesOutGone;
    expect([leaves(true, true), leaves(true, false), leaves(false, true)]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

test('the versions are those of the stages, and of the signals once the plan has ended', () => {
  const stages = ['v1.36.3+x.2', 'v1.36.3+x.2', '', 'v1.37.0'].map((version, command) =>
    workers(['done'], { command, version }),
  );
  const facts = { w1: { asked: 'v1.36.2+x.0' } };
  expect(read({ stages, facts }).versions).toEqual(['v1.36.3+x.2', 'v1.37.0']);
  expect(read({ stages, facts, rollout: DONE }).versions).toEqual(['v1.36.2+x.0']);
  expect(read({ stages, rollout: DONE }).versions).toEqual(['v1.36.3+x.2', 'v1.37.0']);
});

describe('the waves of a plan', () => {
  const waves = [{ count: 1 }, { count: 1 }, {}];
  const progress = (states: readonly RecordedState[], policy: Partial<RolloutPolicy>) =>
    read({ stages: [buildStage('controller', ['c1']), workers(states)], policy }).waves();

  test.each<[string, readonly RecordedState[], number]>([
    ['none of its targets has started', ['pending', 'pending', 'pending'], 0],
    ['all of its targets have ended', ['done', 'failed', 'skipped'], 3],
  ])('count as ended from the first one: %s', (_title, states, ended) => {
    expect(progress(states, { waves })).toEqual([{ planned: 3, ended }]);
  });

  test('a wave has not ended while one of its targets is pending or in progress', () => {
    const one = { waves: [{ count: 3 }] };
    expect(progress(['done', 'pending', 'done'], one)).toEqual([{ planned: 1, ended: 0 }]);
    expect(progress(['done', 'intended', 'done'], one)).toEqual([{ planned: 1, ended: 0 }]);
  });

  test('a stage without waves has no progress of them', () => {
    expect(progress(['pending'], {})).toEqual([]);
    expect(progress([], { waves: [] })).toEqual([]);
  });

  test('those with pending targets that need an approval are named while the plan is open', () => {
    const needed = { waves: waves.map((wave) => ({ ...wave, needsApproval: true })) };
    const unapproved = (states: readonly RecordedState[], given: Given = {}) =>
      read({ stages: [workers(states)], policy: needed, ...given }).unapproved();
    expect(unapproved(['pending', 'pending', 'pending'])).toEqual([1, 2, 3]);
    expect(unapproved(['pending', 'pending', 'pending'], { rollout: { phase: 'failed' } })).toEqual(
      [],
    );
    expect(unapproved(['pending'], { policy: {} })).toEqual([]);
    expect(unapproved(['done', 'done', 'done'])).toEqual([]);
  });
});

describe('the findings of a run', () => {
  const action = {
    kind: 'job',
    namespace: 'x',
    template: { spec: {} },
    pinToNode: false,
    retries: 0,
  } as const;
  const hook = (name: string, when: HookMoment): Hook => ({
    name,
    when,
    action,
    timeoutMs: MINUTE,
  });
  const hooks = [
    hook('before', 'beforePlan'),
    hook('drain', 'beforeDrain'),
    hook('after', 'afterPlan'),
  ];
  const runs = planHookRuns(snapshotOf({}), { hooks }, 'beforePlan', 'afterPlan');
  const ran = (state: HookState): HookResult[] =>
    runs.slice(0, 1).map(({ id }) => ({ id, hook: 'before', state, message: 'm', since: T0 }));

  test('a reader that has asked for nothing has found nothing', () => {
    expect(read({}).findings).toMatchObject({ failures: [], checks: [], hooks: [], cordoned: [] });
    expect(read({}).findings.retryableHooks()).toEqual([]);
    expect(read({}).findings.failedChecks()).toEqual([]);
  });

  test('they are those of the snapshot and of the reader', () => {
    const health: CheckResult[] = [{ name: 'pods' } as unknown as CheckResult];
    const cordoned = [{ target: 'w1', message: 'w1 stays cordoned' }];
    const parts = { outside: { health, hooks: ran('running') } };
    expect(read({ parts, input: { cordoned } }).findings).toMatchObject({
      checks: health,
      hooks: ran('running'),
      cordoned,
    });
  });

  test('the first ten failed targets are named, with what is known of their causes', () => {
    const states = Array.from({ length: 12 }, (): RecordedState => 'failed');
    const facts = { w1: { observation: failed('the disk is full') } };
    const { failures } = read({ stages: [workers(states)], facts }).findings;
    expect(failures.map(({ name }) => name)).toEqual(states.slice(2).map((_, at) => `w${at + 1}`));
    expect(failures.slice(0, 2)).toEqual([
      { name: 'w1', state: 'failed', cause: because('TargetFailed', 'the disk is full') },
      { name: 'w2', state: 'failed', cause: undefined },
    ]);
    expect(read({ stages: [workers(['missing', 'skipped'])] }).findings.failures).toEqual([
      { name: 'w1', state: 'missing', cause: undefined },
    ]);
  });

  test('targets that have ended are settled, and so are hooks of the plan that have not succeeded', () => {
    const stages = [workers(['done', 'failed', 'pending'])];
    const settled = (found: readonly HookResult[] | undefined) =>
      read({ stages, policy: { hooks }, parts: { outside: { hooks: found } } }).findings.settled();
    const ids = runs.map(({ id }) => id);
    expect(ids).toHaveLength(2);
    expect(settled(undefined)).toEqual(['w2', 'w1', ...ids]);
    expect(settled(ran('failed'))).toEqual(['w2', 'w1', ...ids]);
    expect(settled(ran('succeeded'))).toEqual(['w2', 'w1', ...ids.slice(1)]);
  });

  test('a failed hook of the plan can run again, unless the plan was aborted', () => {
    const retryable = (more: object) => {
      const { plan } = controls(more);
      const parts = { plan, outside: { hooks: ran('failed') } };
      return read({ policy: { hooks }, parts }).findings.retryableHooks();
    };
    expect(retryable({})).toEqual(['before']);
    expect(retryable({ abort: 'no' })).toEqual([]);
  });
});

describe('nodes that joined a plan', () => {
  const created = { w1: { created: later(MINUTE) } };

  test('a plan without a run has none', () => {
    const parts = { plan: { joined: [] } };
    expect(read({ facts: created, parts }).joined()).toMatchObject([{ name: 'w1' }]);
    expect(read({ facts: created, parts, rollout: { phase: 'new' } }).joined()).toEqual([]);
  });
});

describe('the situations of a plan', () => {
  const FAILED: Given = { stages: [workers(['failed'])], rollout: { phase: 'failed' } };
  const situations = (given: Given) => read({ ...FAILED, ...given }).situations();
  const ofBack = (isRollBack: boolean) => ({ kind: 'NodesFailed', isRollBack, nodes: ['w1'] });

  test('a plan that goes back says so, whether or not its run is recorded', () => {
    expect(situations({})).toMatchObject([ofBack(false)]);
    const goesBack = workers(['failed'], { goesBack: true });
    expect(situations({ stages: [goesBack] })).toMatchObject([ofBack(true)]);
    const edited = { phase: 'failed', edit: 'its spec has changed since' } as const;
    expect(situations({ stages: [goesBack], rollout: edited })).toMatchObject([
      { kind: 'Edited', isRollBack: false, failed: ['w1'] },
    ]);
    const rollout = { ...edited, rollsBack: 'plan-uid/run-0' };
    expect(situations({ rollout })).toMatchObject([{ kind: 'Edited', isRollBack: true }]);
  });

  test('a mended target keeps its slot if one of the stages says so', () => {
    const stages = [
      workers(['done']),
      workers(['failed', 'pending'], { command: 1, failedHoldSlots: true }),
    ];
    const facts = { '1/worker/w1': { observation: failed('no'), version: 'v1.36.3+x.2' } };
    const given = { stages, facts, rollout: {} };
    expect(situations(given)).toMatchObject([{ kind: 'MendedKeepsSlot', nodes: ['w1'] }]);
    expect(
      situations({ ...given, stages: stages.map((each) => ({ ...each, failedHoldSlots: false })) }),
    ).toEqual([]);
  });

  test('the checks because of which targets failed are named', () => {
    const message = 'the health check pods fails';
    const reason = {
      ...because('HealthCheckFailing', message, { policy: 'careful', check: 'pods' }),
      about: ['w1'],
    };
    const health = {
      checks: [{ name: 'pods' }, { name: 'disks' }],
    } as unknown as RolloutPolicy['health'];
    const reading = read({
      ...FAILED,
      rollout: { phase: 'failed', reason },
      policy: health === undefined ? {} : { health },
    });
    expect(reading.findings.failedChecks()).toEqual(['pods']);
  });
});

test('the other parts are those of the rules that decide them', () => {
  const waves = [{ needsApproval: true }];
  const approvals = [{ wave: 1, by: 'ada', run: 'plan-uid/run-1' }];
  const decisions = { plan: 'plan', place: 'x', exists: true, approvals, accepted: [] };
  const reading = read({
    policy: { waves, paused: true, rollsBackOnFailure: true },
    parts: { plan: { decisions: answered(decisions) } },
  });
  expect(reading.decided().approved).toEqual(approvals);
  expect(reading.stopsAhead()).toEqual(['Paused']);
  expect(reading.rollBack()).toEqual({ kind: 'ahead' });
  expect(reading.work()).toBe('upgrade');
  expect(reading.next()).toEqual(['w1']);
  expect(reading.differing()).toEqual([]);
  expect([reading.isOver, reading.startsAgain, reading.eta]).toEqual([false, false, undefined]);
  const over = read({
    stages: [workers(['failed', 'pending'])],
    rollout: { phase: 'failed', reason: { ...because('Stopped', 'w1 failed'), about: ['w1'] } },
    policy: { maxFailures: 0 },
  });
  expect(over.isOver).toBe(true);
  expect(over.stopped()?.unstarted).toEqual(['w2']);
});

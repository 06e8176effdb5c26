/** Tests what the status of a NodeRollout says about a plan at one time, and what it keeps of the status before. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRollout, NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import { assess } from '../assess/assess.ts';
import { type PlanReading, readPlan } from '../explain/plan-reading.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { Wait } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { statusOf } from './node-rollout-status.ts';

const NOW = T0 + 5 * MINUTE;

interface Scene {
  readonly rollout: Rollout;
  readonly waits?: readonly Wait[];
  readonly policy?: Partial<RolloutPolicy>;
  readonly facts?: Readonly<Record<string, KnownFacts>>;
}

function readingOf({ rollout, waits = [], policy, facts }: Scene): PlanReading {
  return readPlan(assess(buildSnapshot(rollout, facts), buildPolicy(policy), NOW), { waits });
}

function stageOf(states: Readonly<Record<string, RecordedState>>, command = 0) {
  const targets = Object.entries(states).map(([name, state]) => buildTarget(name, state));
  return buildStage('worker', targets, { command });
}

function previousWith(
  status: NodeRolloutStatus | undefined,
  uid = 'plan-uid',
  generation?: number,
): NodeRollout {
  return {
    metadata: { name: 'plan', ...(generation === undefined ? {} : { generation }) },
    spec: { plan: { apiVersion: 'v1', kind: 'Plan', name: 'plan', uid } },
    ...(status === undefined ? {} : { status }),
  };
}

const RUNNING = buildRollout([stageOf({ w1: 'done', w2: 'pending' })]);

test('the versions of a plan are shown as one text, each once', () => {
  const stages = ['v2', 'v3', 'v2'].map((version, command) =>
    buildStage('worker', [`w${command}`], { command, version }),
  );
  const reading = readingOf({ rollout: buildRollout(stages) });
  expect(statusOf({ reading }, undefined, NOW).version).toBe('v2, v3');
});

test.each([
  [512, 'x'.repeat(512)],
  [513, `${'x'.repeat(511)}…`],
])('a version of %i characters is shown with at most 512 characters', (length, shown) => {
  const stage = buildStage('worker', ['w1'], { version: 'x'.repeat(length) });
  const reading = readingOf({ rollout: buildRollout([stage]) });
  expect(statusOf({ reading }, undefined, NOW).version).toBe(shown);
});

const WAVES = { waves: [{ selector: { matchLabels: { wave: 'first' } } }, {}] };
const FIRST = { labels: { wave: 'first' } };
const FACTS = { w1: FIRST, w4: FIRST };

test.each<[string, Scene, NodeRolloutStatus['wave']]>([
  [
    'the first wave with a node that has not ended',
    {
      rollout: buildRollout([stageOf({ w1: 'done', w2: 'intended', w3: 'pending' })]),
      policy: WAVES,
      facts: FACTS,
    },
    { current: 2, total: 2 },
  ],
  [
    'the wave of the first stage that is not over',
    {
      rollout: buildRollout([
        stageOf({ w1: 'done', w2: 'done', w3: 'done' }),
        stageOf({ w4: 'pending', w5: 'pending' }, 1),
      ]),
      policy: WAVES,
      facts: FACTS,
    },
    { current: 1, total: 2 },
  ],
  ['no wave if the policy has none', { rollout: RUNNING }, undefined],
  [
    'no wave before the plan begins',
    { rollout: { ...RUNNING, phase: 'new' }, policy: WAVES },
    undefined,
  ],
  [
    'no wave after the end of the plan',
    {
      rollout: buildRollout([stageOf({ w1: 'failed', w2: 'pending' })], { phase: 'failed' }),
      policy: WAVES,
    },
    undefined,
  ],
  [
    'no wave once every wave has ended',
    { rollout: buildRollout([stageOf({ w1: 'done', w2: 'done' })]), policy: WAVES },
    undefined,
  ],
])('the status shows %s', (_title, scene, wave) => {
  expect(statusOf({ reading: readingOf(scene) }, undefined, NOW).wave).toEqual(wave);
});

const WAIT: Wait = {
  gate: 'not-paused',
  reason: because('Paused', 'the plan is\npaused'),
  ends: 'somebody\nresumes it',
  since: later(0),
};

test.each<[string, Wait, NodeRolloutStatus['waiting']]>([
  [
    'with what ends it',
    WAIT,
    {
      reason: 'Paused',
      message: 'the plan is paused',
      ends: 'somebody resumes it',
      since: later(0),
    },
  ],
  [
    'without an end that nobody knows',
    { ...WAIT, ends: undefined },
    { reason: 'Paused', message: 'the plan is paused', since: later(0) },
  ],
])('a wait is shown in printable words, %s', (_title, wait, waiting) => {
  const reading = readingOf({ rollout: RUNNING, waits: [wait] });
  const status = statusOf({ reading }, undefined, NOW);
  expect(status.waiting).toEqual(waiting);
});

test('a plan that has ended waits for nothing', () => {
  const reading = readingOf({ rollout: { ...RUNNING, phase: 'failed' }, waits: [WAIT] });
  expect(statusOf({ reading }, undefined, NOW).waiting).toBeUndefined();
});

test.each([
  [1024, 'x'.repeat(1024)],
  [1025, `${'x'.repeat(1023)}…`],
])('a message of %i characters is shown with at most 1024 characters', (length, shown) => {
  const wait = { ...WAIT, reason: because('Paused', 'x'.repeat(length)) };
  const reading = readingOf({ rollout: RUNNING, waits: [wait] });
  const { waiting, conditions } = statusOf({ reading }, undefined, NOW);
  expect(waiting?.message).toBe(shown);
  expect(conditions?.find(({ type }) => type === 'Waiting')?.message).toBe(shown);
});

test('the way back is shown with a printable message', () => {
  const wayBack = { state: 'closed', message: 'w1 keeps\nno binary' } as const;
  const reading = { ...readingOf({ rollout: RUNNING }), wayBack: () => wayBack };
  expect(statusOf({ reading }, undefined, NOW).wayBack).toEqual({
    state: 'closed',
    message: 'w1 keeps no binary',
  });
  expect(statusOf({ reading: readingOf({ rollout: RUNNING }) }, undefined, NOW)).not.toHaveProperty(
    'wayBack',
  );
});

function completedOf(reading: PlanReading): string | undefined {
  const { conditions = [] } = statusOf({ reading }, undefined, NOW);
  const completed = conditions.find(({ type }) => type === 'Completed');
  return completed && `${completed.status} ${completed.reason}: ${completed.message}`;
}

const SKIPPED = because('DoneWithSkipped', 'w2 was left out');

test.each<[string, Scene, string]>([
  [
    'every target is done',
    { rollout: buildRollout([stageOf({ w1: 'done', w2: 'done' })], { phase: 'done' }) },
    'True Completed: every target is done',
  ],
  [
    'a target was left out',
    {
      rollout: buildRollout([stageOf({ w1: 'done', w2: 'skipped' })], {
        phase: 'done',
        reason: SKIPPED,
      }),
    },
    'False DoneWithSkipped: w2 was left out',
  ],
  [
    'there was no target',
    { rollout: buildRollout([], { phase: 'done' }) },
    'False NoTargets: there was no target, so nothing was done',
  ],
  [
    'every target is done, but the end is not recorded yet',
    { rollout: buildRollout([stageOf({ w1: 'done' })]) },
    'False InFlight: the plan is running',
  ],
  [
    'the plan has failed',
    {
      rollout: buildRollout([stageOf({ w1: 'failed' })], {
        phase: 'failed',
        reason: because('TargetFailed', 'w1: 404'),
      }),
    },
    'False TargetFailed: w1: 404',
  ],
  [
    'nodes were deleted or brought to another version since',
    {
      rollout: buildRollout(
        [stageOf({ w1: 'done', w2: 'done', w3: 'done' }), stageOf({ w2: 'done' }, 1)],
        { phase: 'done' },
      ),
      facts: { w1: { version: 'v1.37.0+x.1' }, w2: { exists: false } },
    },
    'True Completed: every target is done; since then, w1 runs v1.37.0+x.1, w2 was deleted',
  ],
])('the condition Completed if %s', (_title, scene, completed) => {
  expect(completedOf(readingOf(scene))).toBe(completed);
});

test('a plan without a readable record has not completed, because no target is known to be done', () => {
  const unread = because('RecordUnread', 'the record is unreadable');
  const reading = readingOf({ rollout: buildRollout([], { phase: 'done', unread }) });
  expect(completedOf(reading)).toMatch(/^False /);
});

test('each condition and the status name the generation of the NodeRollout', () => {
  const outside = {
    delivery: { isGood: true, message: 'fine' },
    silencing: { isGood: true, message: 'fine' },
  };
  const reading = readingOf({ rollout: RUNNING });
  const { observedGeneration, conditions = [] } = statusOf(
    { reading, outside },
    previousWith({}, 'plan-uid', 7),
    NOW,
  );
  expect(observedGeneration).toBe(7);
  expect(conditions.map(({ type, observedGeneration: seen }) => `${type} ${seen}`)).toEqual([
    'Completed 7',
    'Degraded 7',
    'Notified 7',
    'Progressing 7',
    'Silenced 7',
    'Waiting 7',
  ]);
});

const EARLIER = later(-600_000);
const HOOK = {
  hook: 'backup',
  target: 'w1',
  id: 'refit-backup-1',
  state: 'Failed',
  message: 'exit code 1',
} as const;
/** What a leader has shown earlier: a condition of each type, and the failure of a hook. */
const SHOWN: NodeRolloutStatus = {
  conditions: ['Custom', 'Notified', 'Progressing', 'Silenced'].map((type) => ({
    type,
    status: 'True' as const,
    reason: 'x',
    message: 'x',
    lastTransitionTime: EARLIER,
  })),
  hooks: [HOOK],
};

test('the times of conditions, conditions of other writers and failures of hooks stay for the same plan', () => {
  const reading = readingOf({ rollout: RUNNING });
  const { conditions = [], hooks } = statusOf({ reading }, previousWith(SHOWN), NOW);
  expect(conditions.map(({ type }) => type)).toEqual([
    'Completed',
    'Custom',
    'Degraded',
    'Progressing',
    'Waiting',
  ]);
  expect(conditions.find(({ type }) => type === 'Progressing')?.lastTransitionTime).toBe(EARLIER);
  expect(hooks).toEqual([HOOK]);
});

test.each([
  ['Silenced', { silencing: { isGood: true, message: 'fine' } }],
  ['Notified', { delivery: { isGood: true, message: 'fine' } }],
])('the condition %s keeps its time while it has the same status', (name, outside) => {
  const reading = readingOf({ rollout: RUNNING });
  const { conditions = [] } = statusOf({ reading, outside }, previousWith(SHOWN), NOW);
  expect(conditions.find(({ type }) => type === name)?.lastTransitionTime).toBe(EARLIER);
});

test('the failure of a hook does not stay once its target is tried again', () => {
  const rollout = buildRollout([stageOf({ w1: 'intended', w2: 'pending' })]);
  expect(
    statusOf({ reading: readingOf({ rollout }) }, previousWith(SHOWN), NOW).hooks,
  ).toBeUndefined();
});

test.each<[string, NodeRollout]>([
  ['another plan with the same name', previousWith(SHOWN, 'another-uid')],
  ['a plan that was deleted', previousWith({ ...SHOWN, planDeleted: later(0) })],
  ['a plan of which nothing was shown', previousWith(undefined)],
])('the conditions and hooks of %s do not apply', (_title, previous) => {
  const { conditions = [], hooks } = statusOf(
    { reading: readingOf({ rollout: RUNNING }) },
    previous,
    NOW,
  );
  expect(conditions.map(({ type, lastTransitionTime }) => `${type} ${lastTransitionTime}`)).toEqual(
    ['Completed', 'Degraded', 'Progressing', 'Waiting'].map(
      (type) => `${type} ${later(5 * MINUTE)}`,
    ),
  );
  expect(hooks).toBeUndefined();
});

test('an aborted plan is shown as it is, although no target has failed', () => {
  const rollout = buildRollout([stageOf({ w1: 'pending' })], {
    phase: 'failed',
    reason: because('Aborted', 'aborted: wrong version'),
  });
  const snapshot = withParts(buildSnapshot(rollout), {
    plan: { controls: { ...NO_CONTROLS, abort: 'wrong version' } },
  });
  const reading = readPlan(assess(snapshot, buildPolicy(), NOW), { waits: [] });
  expect(completedOf(reading)).toBe('False Aborted: aborted: wrong version');
});

/** Tests which notifications are sent about a plan, and that no notification is sent twice or long after the event. */
import { expect, test } from 'vitest';
import { knowledgeOf } from '../../../test/support/builders/knowledge.ts';
import { MemoryApi } from '../../../test/support/builders/memory-api.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { readPlan } from '../explain/plan-reading.ts';
import type { Wait } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { gather } from '../snapshot/gather.ts';
import { viewsOf } from '../snapshot/world.ts';
import {
  LONG_MS,
  longAfter,
  notificationsOf,
  type Standing,
  standingOf,
  type Told,
  toldOf,
} from './notifications.ts';

type State = Parameters<typeof buildTarget>[1];

interface Scene {
  readonly states?: readonly State[];
  readonly more?: Partial<Rollout>;
  readonly waits?: readonly Wait[];
  readonly now?: number;
}

const PLAN = { metadata: { name: 'plan', uid: 'plan-uid', generation: 4 } };
const WAVES = [{ count: 1 }, {}];

function standing({
  states = ['intended', 'pending'],
  more,
  waits = [],
  now = T0,
}: Scene): Standing {
  const targets = states.map((state, index) => buildTarget(`w${index + 1}`, state));
  const rollout = buildRollout([buildStage('worker', targets)], more);
  const dialect = { ...tableDialect, resolve: () => rollout };
  const views = viewsOf(
    dialect.watched.map(({ resource }) => [resource, new MemoryApi().view(resource)]),
  );
  const plan = { ...PLAN, spec: rollout };
  const snapshot = gather(dialect, plan, knowledgeOf(views).world, now);
  const assessment = assess(snapshot, buildPolicy({ waves: WAVES }), now);
  return standingOf('table//plan', readPlan(assessment, { waits }));
}

function wait(code: Wait['reason']['code'], agoMs: number, message = 'why'): Wait {
  const since = later(-agoMs);
  return { gate: 'not-paused', reason: because(code, message), ends: 'it is over', since };
}

const RUNNING = toldOf(standing({}));
const FAILED = because('TargetFailed', 'w1: 404');

const told = (before: Told | undefined, scene: Scene): string[] =>
  notificationsOf(before, standing(scene)).map(({ event, message }) => `${event} ${message}`);

const APPROVAL = wait('WaveNeedsApproval', 0, 'wave 2 needs approval');
const LONG = wait('HealthCheckFailing', LONG_MS + 10_000, 'error-rate\u001b[31m fails');

test.each<[string, Told | undefined, Scene, string[]]>([
  ['a plan that is not recorded', undefined, { more: { phase: 'new' } }, []],
  [
    'the first look at a run',
    undefined,
    {},
    ['Started table//plan: the upgrade to v1.36.3+x.2 has started; 2 nodes'],
  ],
  [
    'an invalid plan whose record has no reason',
    undefined,
    {
      states: ['pending', 'pending'],
      more: {
        phase: 'invalid',
        problems: [because('InvalidPlan', 'missing channel and version')],
      },
    },
    ['Failed table//plan: ended as invalid: missing channel and version'],
  ],
  ['a run without a target', undefined, { states: [] }, []],
  [
    'a run that rolls another run back',
    undefined,
    { more: { rollsBack: 'uid/id1' } },
    ['Started table//plan: the roll-back to v1.36.3+x.2 has started; 2 nodes'],
  ],
  ['the same again', RUNNING, {}, []],
  [
    'another run',
    { ...RUNNING, run: 'other' },
    {},
    ['Started table//plan: the upgrade to v1.36.3+x.2 has started; 2 nodes'],
  ],
  [
    'the end of a wave, whose nodes are not chosen by their order',
    RUNNING,
    { states: ['done', 'done'] },
    [
      'WaveDone table//plan: wave 1 of 2 has ended; 2 of 2 nodes done',
      'WaveDone table//plan: wave 2 of 2 has ended; 2 of 2 nodes done',
    ],
  ],
  [
    'one more wave than before',
    { ...RUNNING, waves: 1 },
    { states: ['done', 'done'] },
    ['WaveDone table//plan: wave 2 of 2 has ended; 2 of 2 nodes done'],
  ],
  [
    'waves that the policy of an ended plan has only since the last notification',
    { ...RUNNING, phase: 'done', plannedWaves: 0 },
    { states: ['done', 'done'], more: { phase: 'done' } },
    [],
  ],
  [
    'the end of a plan whose waves were planned anew since the last notification',
    { ...RUNNING, waves: 1, plannedWaves: 3 },
    { states: ['done', 'done'], more: { phase: 'done' } },
    ['Done table//plan: the upgrade to v1.36.3+x.2 is done; 2 of 2 nodes done'],
  ],
  [
    'a run that began a long time ago, and of which nobody knows what was told',
    undefined,
    { states: ['done', 'pending'], now: T0 + 3_600_000 },
    [],
  ],
  [
    'an approval that is needed',
    RUNNING,
    { waits: [APPROVAL] },
    ['WaitingForApproval table//plan: wave 2 needs approval; this ends when it is over'],
  ],
  ['the same approval', { ...RUNNING, approval: 1 }, { waits: [APPROVAL] }, []],
  [
    'a long wait, without what would control a terminal',
    RUNNING,
    { waits: [LONG] },
    [
      `WaitingLong table//plan: has waited since ${LONG.since}: error-rate\uFFFD[31m fails; this ends when it is over`,
    ],
  ],
  ['the same long wait', { ...RUNNING, waiting: 'HealthCheckFailing' }, { waits: [LONG] }, []],
  ['a short wait', RUNNING, { waits: [wait('HealthCheckFailing', LONG_MS - 1)] }, []],
  ['a wait that the policy asks for', RUNNING, { waits: [wait('Blackout', 2 * LONG_MS)] }, []],
  [
    'a node that failed',
    RUNNING,
    { states: ['failed', 'pending'] },
    ['Failed table//plan: 1 of 2 nodes failed: w1 failed'],
  ],
  ['the same failure', { ...RUNNING, failed: 1 }, { states: ['failed', 'pending'] }, []],
  [
    'the end after a failure',
    { ...RUNNING, failed: 1 },
    { states: ['failed', 'pending'], more: { phase: 'failed', reason: FAILED } },
    ['Failed table//plan: ended as failed: w1: 404'],
  ],
  [
    'the end',
    { ...RUNNING, waves: 2 },
    { states: ['done', 'done'], more: { phase: 'done' } },
    ['Done table//plan: the upgrade to v1.36.3+x.2 is done; 2 of 2 nodes done'],
  ],
  [
    'an end that nobody has told about, a long time ago',
    undefined,
    { states: ['done', 'done'], more: { phase: 'done' }, now: T0 + 3_600_000 },
    [],
  ],
  [
    'a plan that is refused',
    undefined,
    {
      states: ['pending', 'pending'],
      more: { phase: 'invalid', reason: because('InvalidPlan', 'no version') },
    },
    ['Failed table//plan: ended as invalid: no version'],
  ],
  [
    'a plan that is refused because a node is missing, before any node started',
    undefined,
    {
      states: ['missing', 'pending'],
      more: { phase: 'incomplete', reason: because('TargetMissing', 'w1 has no Node') },
    },
    ['Failed table//plan: ended as incomplete: w1 has no Node'],
  ],
  [
    'a plan that is refused because of a download, before any node started',
    undefined,
    {
      states: ['failed', 'pending'],
      more: { phase: 'incomplete', reason: because('DownloadImpossible', 'w1: 404') },
    },
    ['Failed table//plan: ended as incomplete: w1: 404'],
  ],
  [
    'a plan that was aborted before it was admitted',
    undefined,
    {
      states: ['pending', 'pending'],
      more: { phase: 'failed', reason: because('Aborted', 'aborted') },
    },
    ['Failed table//plan: ended as failed: aborted'],
  ],
  [
    'a run that ended as incomplete after it had upgraded a node, at first sight',
    undefined,
    {
      states: ['done', 'missing'],
      more: { phase: 'incomplete', reason: because('TargetMissing', 'w2 has no Node') },
    },
    [
      'Started table//plan: the upgrade to v1.36.3+x.2 has started; 2 nodes',
      'WaveDone table//plan: wave 1 of 2 has ended; 1 of 2 nodes done',
      'WaveDone table//plan: wave 2 of 2 has ended; 1 of 2 nodes done',
      'Failed table//plan: ended as incomplete: w2 has no Node',
    ],
  ],
  [
    'the end of a run that left a node out',
    RUNNING,
    {
      states: ['done', 'skipped'],
      more: {
        phase: 'done',
        reason: because('DoneWithSkipped', '1 of 2 targets done; skipped: w2'),
      },
    },
    [
      'WaveDone table//plan: wave 1 of 2 has ended; 1 of 2 nodes done',
      'WaveDone table//plan: wave 2 of 2 has ended; 1 of 2 nodes done',
      'Done table//plan: the upgrade to v1.36.3+x.2 has ended, but not for every node: 1 of 2 targets done; skipped: w2',
    ],
  ],
])('what is told about %s', (_name, before, scene, expected) => {
  expect(told(before, scene)).toEqual(expected);
});

test('an announcement that was made is not made again, whatever it was about', () => {
  for (const states of [
    ['done', 'failed'],
    ['done', 'done'],
  ] as const)
    for (const phase of ['running', 'failed', 'done'] as const)
      for (const waits of [[APPROVAL], [LONG], []]) {
        const after = standing({ states, more: { phase }, waits });
        expect(notificationsOf(toldOf(after), after)).toEqual([]);
      }
});

test('a second failure of the same kind has an id of its own', () => {
  const idAt = (now: number) =>
    notificationsOf(RUNNING, standing({ states: ['failed', 'pending'], now }))[0]?.id;
  expect(idAt(T0)).toBe(idAt(T0));
  expect(idAt(T0 + 1000)).not.toBe(idAt(T0));
});

test('a wait is looked at again when it has become long', () => {
  expect(longAfter([wait('HealthCheckFailing', 60_000)], T0)).toBe(LONG_MS + 10_000 - 60_000);
  expect(longAfter([LONG, wait('Paused', 0)], T0)).toBeUndefined();
});

test('the end of a run whose version was edited while it ran is told with the versions of the nodes', () => {
  const stage = {
    ...buildStage('worker', [buildTarget('w1', 'done'), buildTarget('w2', 'done')]),
    version: 'v2',
  };
  const facts = { w1: { asked: 'v1' }, w2: { asked: 'v2' } };
  const snapshot = withParts(buildSnapshot(buildRollout([stage], { phase: 'done' }), facts), {
    plan: { edits: { isAfterEnd: false, isNew: false } },
  });
  const reading = readPlan(assess(snapshot, buildPolicy(), T0), { waits: [] });
  const notes = notificationsOf(RUNNING, standingOf('table//plan', reading));
  expect(notes.map(({ event, message }) => `${event} ${message}`)).toContain(
    'Done table//plan: the plan has ended: it was edited while it ran, and installed v1 on w1, and v2 on w2; 2 of 2 nodes done',
  );
});

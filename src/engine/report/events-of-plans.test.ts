/** Tests the Events that are recorded for a plan between two records. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS, type OpenWindow } from '../model/controls.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import { openingEvents, planEvents, restartEvent } from './events.ts';

const reason = { code: 'TargetFailed', message: 'w1: 404' } as const;
const begun = buildRollout([buildStage('controller', ['c1']), buildStage('worker', ['w1', 'w2'])]);
const over = buildRollout([
  buildStage('worker', [buildTarget('w1', 'done'), buildTarget('w2', 'done')]),
]);
const half = buildRollout([
  buildStage('worker', [
    buildTarget('w1', 'failed'),
    buildTarget('w2', 'done'),
    buildTarget('w3', 'missing'),
    buildTarget('w4', 'unsupported'),
  ]),
]);

test.each<[string, Rollout, Rollout, string[]]>([
  ['it begins', { ...begun, phase: 'new' }, begun, ['Normal Started: 3 targets in 2 stages']],
  [
    'it begins, and one of its selectors matches nothing',
    { ...begun, phase: 'new' },
    {
      ...begun,
      stages: [
        ...begun.stages.map((stage) => ({ ...stage, selection: 'labels "zone=earth"' })),
        { ...buildStage('worker', []), selection: 'labels "zone=mars"' },
      ],
    },
    [
      'Normal Started: 3 targets in 2 stages',
      'Warning NoTargets: spec.commands[0] has no workers: nothing matches labels "zone=mars"',
    ],
  ],
  ['it only goes on', begun, { ...begun, blocked: true }, []],
  [
    'what held targets back is over, and somebody starts',
    { ...begun, blocked: true },
    buildRollout([
      buildStage('controller', [buildTarget('c1', 'intended')]),
      buildStage('worker', ['w1', 'w2']),
    ]),
    ['Normal Resumed: No longer blocked: starting c1'],
  ],
  [
    'several start',
    { ...buildRollout([buildStage('worker', ['w1', 'w2', 'w3'])]), blocked: true },
    buildRollout([
      buildStage('worker', [buildTarget('w1', 'intended'), buildTarget('w2', 'intended'), 'w3']),
    ]),
    ['Normal Resumed: No longer blocked: starting w1 and 1 more'],
  ],
  [
    'what held targets back is over, and nobody is left to start',
    { ...begun, blocked: true },
    begun,
    [],
  ],
  ['a target fails', begun, { ...begun, reason }, ['Warning TargetFailed: w1: 404']],
  [
    'it ends for a reason that was told already',
    { ...begun, reason },
    { ...begun, reason, phase: 'failed' },
    [
      'Warning Stopped: the plan ended before all targets were done: 0 of 3 targets done; not started: c1, w1, w2',
    ],
  ],
  [
    'it ends badly at once',
    begun,
    { ...half, reason, phase: 'failed' },
    [
      'Warning TargetFailed: w1: 404',
      'Warning Stopped: the plan ended before all targets were done: 1 of 4 targets done; failed: w1; missing: w3; without a payload: w4',
    ],
  ],
  [
    'it has one target, which is done',
    buildRollout([buildStage('worker', ['w1'])]),
    buildRollout([buildStage('worker', [buildTarget('w1', 'done')])], { phase: 'done' }),
    ['Normal Completed: the target is done'],
  ],
  [
    'it ends well, but left a target out',
    begun,
    {
      ...buildRollout([
        buildStage('worker', [buildTarget('w1', 'done'), buildTarget('w2', 'skipped')]),
      ]),
      phase: 'done',
    },
    ['Normal Completed: 1 of 2 targets are done'],
  ],
  [
    'it ends badly without a reason',
    begun,
    { ...half, phase: 'failed' },
    [
      'Warning Stopped: the plan ended before all targets were done: 1 of 4 targets done; failed: w1; missing: w3; without a payload: w4',
    ],
  ],
  [
    'it begins with a download that has no sha256, and with an empty list of nodes',
    { ...begun, phase: 'new' },
    buildRollout([
      buildStage('worker', ['w1'], {
        payloads: { 'linux-amd64': { url: 'https://example.com/file' } },
      }),
      buildStage('controller', [], { command: 1 }),
    ]),
    [
      'Normal Started: 1 target in 1 stage',
      'Warning Unverified: these files have no sha256, so nodes run them unverified: the download of spec.commands[0] for linux-amd64',
    ],
  ],
  [
    'nodes that joined are included',
    buildRollout([buildStage('worker', ['w1'])]),
    buildRollout([
      buildStage('worker', ['w1', 'w2', 'w3']),
      buildStage('worker', ['w1', 'w2'], { command: 1 }),
    ]),
    [
      'Normal NodeIncluded: w2, w3 joined after the plan began and are included, as newNodes of the policy says',
    ],
  ],
  [
    'it was refused, and later begins with other targets',
    { ...buildRollout([buildStage('worker', ['w1'])]), phase: 'invalid' },
    begun,
    [],
  ],
  [
    'the same reason is recorded in printable words',
    { ...begun, reason: { ...reason, message: 'a b' } },
    { ...begun, reason: { ...reason, message: 'a\nb' } },
    [],
  ],
  [
    'it is refused',
    { ...begun, phase: 'new' },
    { ...begun, phase: 'invalid', reason: { code: 'InvalidPlan', message: 'spec.id' } },
    ['Warning InvalidPlan: spec.id'],
  ],
  ['it ends well', over, { ...over, phase: 'done' }, ['Normal Completed: all 2 targets are done']],
  [
    'it went on within its failure budget, and is over',
    { ...half, reason },
    {
      ...half,
      phase: 'failed',
      reason: { code: 'DoneWithFailures', message: '1 of 2 targets done; failed: w1' },
    },
    ['Warning DoneWithFailures: 1 of 2 targets done; failed: w1'],
  ],
  [
    'it ends without having had anything to do: somebody chose wrongly, and hears of it',
    { ...buildRollout([]), phase: 'new' },
    {
      ...buildRollout([]),
      phase: 'done',
      reason: { code: 'NoTargets', message: 'there was no target' },
    },
    ['Warning NoTargets: there was no target'],
  ],
])('the Events of a plan: %s', (_name, before, after, story) => {
  const told = planEvents(before, after).map(
    ({ type, reason: { code, message } }) => `${type} ${code}: ${message}`,
  );
  expect(told).toEqual(story);
});

test('a wait of the whole plan or of a target in progress is not what blocks pending targets', () => {
  const since = '2026-11-20T08:00:00Z';
  const reason = { code: 'NodeNotReady', message: 'x' } as const;
  const waits = [
    { gate: 'paused', reason, since },
    { gate: 'node-ready', target: 'w9', reason, since },
  ];
  expect(planEvents(begun, { ...begun, blocked: true }, waits)).toEqual([]);
});

test('a plan that starts again after an edit says why', () => {
  expect(restartEvent('it names v3 now')).toEqual({
    type: 'Normal',
    reason: {
      code: 'RestartedAfterEdit',
      message:
        'the plan was edited after it ended (it names v3 now), so it starts again, as edits.afterEnd of its policy says',
    },
  });
});

const HOUR_OPEN = { until: later(HOUR), by: 'anna', reason: 'hotfix' };
/** A window that is closed at T0, which is a Friday at 8 o'clock. */
const NIGHT = { days: [], startMinute: 22 * 60, lengthMs: HOUR, timeZone: 'UTC' };
const pair = (...states: readonly RecordedState[]): Rollout =>
  buildRollout([
    buildStage(
      'worker',
      states.map((state, index) => buildTarget(`w${index + 1}`, state)),
    ),
  ]);

test.each<[string, OpenWindow | undefined, boolean, Rollout, string[]]>([
  [
    'says who opened it',
    HOUR_OPEN,
    false,
    pair('intended', 'failed', 'intended'),
    [
      'Normal WindowOpened: Starting w1 and 1 more: anna opened the maintenance window until 2026-11-20T09:00:00Z (hotfix)',
    ],
  ],
  ['is not reported if nothing starts', HOUR_OPEN, false, pair('pending', 'failed', 'pending'), []],
  [
    'is not reported inside of a window of the policy',
    HOUR_OPEN,
    true,
    pair('intended', 'pending', 'pending'),
    [],
  ],
  [
    'is not reported if nobody opened it',
    undefined,
    false,
    pair('intended', 'pending', 'pending'),
    [],
  ],
])('a start in an opened window %s', (_title, openWindow, isOpen, after, told) => {
  const snapshot = withParts(buildSnapshot(pair('pending', 'pending', 'pending')), {
    plan: { controls: { ...NO_CONTROLS, openWindow } },
  });
  const policy = buildPolicy({
    windows: isOpen ? [{ ...NIGHT, startMinute: 0, lengthMs: 24 * HOUR }] : [NIGHT],
  });
  const events = openingEvents(assess(snapshot, policy, T0), after);
  expect(
    events.map(({ type, reason: { code, message } }) => `${type} ${code}: ${message}`),
  ).toEqual(told);
});

test('a gate that blocks a free slot is reported once, in its own words', () => {
  const since = '2026-11-20T08:00:00Z';
  const waits = [
    { gate: 'slots', reason: { code: 'NoFreeSlot', message: 'x' }, since },
    {
      gate: 'node-ready',
      target: 'w1',
      reason: { code: 'NodeNotReady', message: 'node w1 is not Ready' },
      since,
    },
  ] as const;
  const blocked = { ...begun, blocked: true };
  const told = [
    { type: 'Warning', reason: { code: 'NodeNotReady', message: 'node w1 is not Ready' } },
  ];
  expect(planEvents(begun, blocked, waits)).toEqual(told);
  expect(planEvents(blocked, blocked, waits)).toEqual([]);
});

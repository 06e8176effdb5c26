/** Tests the Events that are recorded for a plan between two records. */
import { expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import type { Rollout } from '../model/rollout.ts';
import { planEvents } from './events.ts';

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
      stages: [...begun.stages, { ...buildStage('worker', []), selection: 'labels "zone=mars"' }],
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

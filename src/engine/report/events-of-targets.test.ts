/** Tests the Events that are recorded for the object of each target. */
import { expect, test } from 'vitest';
import { failed, succeeded, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import type { Observation } from '../model/facts.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import {
  cleanUpEvents,
  nodeActionEvents,
  retryEvents,
  signalEvents,
  type TargetEvent,
  targetEvents,
} from './events.ts';

const rolloutOf = (state: RecordedState) =>
  buildRollout([
    buildStage('worker', [buildTarget('w1', state, { since: later(0) })], { version: 'v2' }),
  ]);
const said = (announcements: readonly TargetEvent[]): string[] =>
  announcements.map(
    ({ type, target, reason }) => `${type} ${target.name} ${reason.code}: ${reason.message}`,
  );

const REPORTED: Observation = {
  kind: 'succeeded',
  attempt: later(0),
  since: later(0),
  report: { from: 'v1', spent: { Downloading: 4000, Restart: 8000 } },
};

test.each<[string, Observation, RecordedState, string[]]>([
  ['done', REPORTED, 'done', ['Normal w1 Completed: Upgraded to v2 (from v1) in 12 s']],
  [
    'done, but the node ran the version already',
    { ...REPORTED, report: { from: 'v2', spent: { Restart: 8000 } } },
    'done',
    ['Normal w1 Completed: Runs v2, as before; the attempt took 8 s'],
  ],
  [
    'done, but the node ran the version already, and nobody knows how long the attempt took',
    { ...REPORTED, report: { from: 'v2' } },
    'done',
    ['Normal w1 Completed: Runs v2, as before'],
  ],
  ['done without a report', succeeded(), 'done', ['Normal w1 Completed: Upgraded to v2']],
  [
    'failed, and back at what it had',
    {
      kind: 'failed',
      attempt: later(0),
      since: later(0),
      message: 'crash loop',
      report: { rolledBack: true },
    },
    'failed',
    ['Warning w1 TargetFailed: w1: crash loop (its previous version runs again)'],
  ],
  [
    'done, after the download needed the room of the kept binary',
    { ...REPORTED, report: { from: 'v1', removed: 'v0' } },
    'done',
    [
      'Warning w1 KeptBinaryRemoved: The agent removed the kept v0, because the disk had no room for it and the download of v2',
      'Normal w1 Completed: Upgraded to v2 (from v1)',
    ],
  ],
  [
    'failed, after the download needed the room of the previous airgap bundle as well',
    {
      kind: 'failed',
      attempt: later(0),
      since: later(0),
      message: '404',
      report: { removed: 'v0', removedBundle: 'v0' },
    },
    'failed',
    [
      'Warning w1 KeptBundleRemoved: The agent removed the airgap bundle of v0, because the disk had no room for it and the download of v2',
      'Warning w1 KeptBinaryRemoved: The agent removed the kept v0, because the disk had no room for it and the download of v2',
      'Warning w1 TargetFailed: w1: 404',
    ],
  ],
  ['failed', failed('404'), 'failed', ['Warning w1 TargetFailed: w1: 404']],
  ['still at work', working('Restart'), 'intended', []],
])('the Events of a node that is %s', (_name, observation, state, told) => {
  const snapshot = buildSnapshot(rolloutOf('intended'), { w1: { observation } });
  const assessment = assess(snapshot, buildPolicy(), T0);
  expect(said(targetEvents(assessment, rolloutOf(state)))).toEqual(told);
});

test('after an edit of the version, the Events name the version of the signal', () => {
  const observation: Observation = { ...REPORTED, report: { from: 'v1', removed: 'v0' } };
  const snapshot = buildSnapshot(rolloutOf('intended'), { w1: { observation, asked: 'v1.5' } });
  const assessment = assess(snapshot, buildPolicy(), T0);
  expect(said(targetEvents(assessment, rolloutOf('done')))).toEqual([
    'Warning w1 KeptBinaryRemoved: The agent removed the kept v0, because the disk had no room for it and the download of v1.5',
    'Normal w1 Completed: Upgraded to v1.5 (from v1)',
  ]);
});

test('a stage after which nodes have the version that they had, such as one of image bundles, upgrades nothing', () => {
  const stage = {
    ...buildStage('worker', [buildTarget('w1', 'intended')], { version: 'v2' }),
    keepsVersion: true,
  };
  const [target = buildTarget('w1')] = stage.targets;
  const rollout = buildRollout([stage]);
  const after = buildRollout([{ ...stage, targets: [{ ...target, state: 'done' }] }]);
  const snapshot = buildSnapshot(rollout, { w1: { observation: REPORTED } });
  const assessment = assess(snapshot, buildPolicy(), T0);
  expect([
    ...said(signalEvents(snapshot, [{ stage, target, agent: {} }])),
    ...said(targetEvents(assessment, after)),
  ]).toEqual([
    'Normal w1 Signalled: Preparation for v2 started (Plan plan)',
    'Normal w1 Completed: Prepared for v2 in 12 s',
  ]);
});

test.each([
  ['a plan that rolls a run back', { rollsBack: 'uid/id1' }, {}, {}],
  ['a stage that goes back to an older version', {}, { goesBack: true }, {}],
  ['a target that runs a newer version', {}, { version: 'v1.36.2' }, { version: 'v1.36.4' }],
])('no Event calls the work an upgrade: %s', (_name, ofRollout, ofStage, facts) => {
  const stage = {
    ...buildStage('worker', [buildTarget('w1', 'intended')], { version: 'v1.36.2' }),
    ...ofStage,
  };
  const [target = buildTarget('w1')] = stage.targets;
  const rollout = buildRollout([stage], ofRollout);
  const after = buildRollout(
    [{ ...stage, targets: [{ ...target, state: 'done' as const }] }],
    ofRollout,
  );
  const signalled = buildSnapshot(rollout, { w1: facts });
  const observation: Observation = { ...REPORTED, report: { from: 'v1.36.4' } };
  const assessment = assess(buildSnapshot(rollout, { w1: { observation } }), buildPolicy(), T0);
  expect([
    ...said(signalEvents(signalled, [{ stage, target, agent: {} }])),
    ...said(targetEvents(assessment, after)),
  ]).toEqual([
    'Normal w1 Signalled: Roll-back to v1.36.2 started (Plan plan)',
    'Normal w1 Completed: Rolled back to v1.36.2 (from v1.36.4)',
  ]);
});

test('Refit writes Events for a signal, a drain and a cancelled upgrade of a node', () => {
  const rollout = rolloutOf('intended');
  const [stage] = rollout.stages;
  const [target] = stage?.targets ?? [];
  if (!stage || !target) throw new Error('there is no target');
  const reason = because('Aborted', 'aborted: wrong version');
  expect([
    ...said(signalEvents(buildSnapshot(rollout), [{ stage, target, agent: {} }])),
    ...said(
      (
        [
          { kind: 'cordon', stage, target, node: 'w1', owner: 'o' },
          {
            kind: 'drain',
            stage,
            target,
            node: 'w1',
            options: { localData: 'evict', unmanagedPods: 'evict' },
          },
          { kind: 'cancel', stage, target, reason },
        ] as const
      ).flatMap((nodeAction) => nodeActionEvents(rollout, nodeAction)),
    ),
  ]).toEqual([
    'Normal w1 Signalled: Upgrade to v2 started (Plan plan)',
    'Normal w1 Draining: Draining for Plan plan: evicting pods',
    'Warning w1 Aborted: aborted: wrong version',
  ]);
});

test('a large rollout has no Events for its steps, but for failures, removed files and cancelled signals', () => {
  const names = Array.from({ length: 5_001 }, (_, index) => `w${index + 1}`);
  const largeOf = (state: RecordedState) =>
    buildRollout([
      buildStage(
        'worker',
        names.map((name) => buildTarget(name, name === 'w1' ? state : 'pending')),
        { version: 'v2' },
      ),
    ]);
  const rollout = largeOf('intended');
  const [stage = buildStage('worker', [])] = rollout.stages;
  const [target = buildTarget('w1')] = stage.targets;
  const eventsOf = (state: RecordedState, observation: Observation): string[] => {
    const snapshot = buildSnapshot(rollout, { w1: { observation } });
    return said(targetEvents(assess(snapshot, buildPolicy(), T0), largeOf(state)));
  };
  expect(signalEvents(buildSnapshot(rollout), [{ stage, target, agent: {} }])).toEqual([]);
  expect(eventsOf('done', { ...REPORTED, report: { removed: 'v0' } })).toEqual([
    'Warning w1 KeptBinaryRemoved: The agent removed the kept v0, because the disk had no room for it and the download of v2',
  ]);
  expect(eventsOf('failed', failed('404'))).toEqual(['Warning w1 TargetFailed: w1: 404']);
  const options = { localData: 'evict', unmanagedPods: 'evict' } as const;
  const of = { stage, target };
  expect(nodeActionEvents(rollout, { kind: 'drain', ...of, node: 'w1', options })).toEqual([]);
  const reason = because('Aborted', 'x');
  expect(said(nodeActionEvents(rollout, { kind: 'cancel', ...of, reason }))).toEqual([
    'Warning w1 Aborted: x',
  ]);
});

type CleanUp =
  | { readonly kind: 'cancel'; readonly node: string; readonly reason: Reason }
  | {
      readonly kind: 'clean-up';
      readonly node: string;
      readonly cordon: boolean;
      readonly taint: boolean;
    }
  | { readonly kind: 'acknowledge'; readonly node?: string; readonly uncordon: 'ours' }
  | { readonly kind: 'taint'; readonly node: string };

const GONE = because('PlanGone', 'Plan plan was deleted');
const CLEANED = { ...rolloutOf('intended'), reason: GONE };

test.each<[string, Rollout, CleanUp, string[]]>([
  [
    'a cancelled signal',
    CLEANED,
    { kind: 'cancel', node: 'w1', reason: because('Aborted', 'x') },
    ['Warning w1 PlanGone: Plan plan was deleted'],
  ],
  [
    'a removed cordon',
    CLEANED,
    { kind: 'clean-up', node: 'w1', cordon: true, taint: true },
    ['Normal w1 PlanGone: Uncordoned: Plan plan was deleted'],
  ],
  [
    'an uncordon for a waiting agent',
    CLEANED,
    { kind: 'acknowledge', node: 'w1', uncordon: 'ours' },
    ['Normal w1 PlanGone: Uncordoned: Plan plan was deleted'],
  ],
  [
    'a removed taint, which has no Event',
    CLEANED,
    { kind: 'clean-up', node: 'w1', cordon: false, taint: true },
    [],
  ],
  ['another action, which has no Event', CLEANED, { kind: 'taint', node: 'w1' }, []],
  ['an object that has no Node', CLEANED, { kind: 'acknowledge', uncordon: 'ours' }, []],
  [
    'a plan of which nobody knows why it is over',
    rolloutOf('intended'),
    { kind: 'clean-up', node: 'w1', cordon: true, taint: true },
    [],
  ],
])('the Events of the Node of a deleted plan about %s', (_title, rollout, action, told) => {
  const [stage = buildStage('worker', [])] = rollout.stages;
  const [target = buildTarget('w1')] = stage.targets;
  expect(
    cleanUpEvents(rollout, { stage, target, ...action }).map(
      ({ type, node, reason }) => `${type} ${node} ${reason.code}: ${reason.message}`,
    ),
  ).toEqual(told);
});

test('a target that is tried again has an Event with the number of the attempt', () => {
  const stage = buildStage('worker', ['w1']);
  const [target = buildTarget('w1')] = stage.targets;
  const retry = { stage, target, attempt: 2, of: 3, dueMs: T0, isOrdered: false };
  expect(said(retryEvents('careful', [retry]))).toEqual([
    'Normal w1 Retried: Attempt 2 of 3 after a failure, as retry of UpgradePolicy careful says',
  ]);
});

/** Tests what a Plan reports and does while it is invalid, aborted, outside of its window or at rest. */
import { describe, expect, test } from 'vitest';
import {
  checkPasses,
  complete,
  GOOD,
  job,
  NOTHING,
  node,
  of,
  pass,
  running,
} from '../../../../test/support/builders/cattle-decisions.ts';
import { HOUR, later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { ABORT_ANNOTATION } from '../../../engine/model/controls.ts';

const aborted = (status?: CattlePlan['status']): CattlePlan => {
  const plan = of({}, status);
  return {
    ...plan,
    metadata: { ...plan.metadata, annotations: { [ABORT_ANNOTATION]: 'wrong image' } },
  };
};

/** The test begins at 08:00 on a Friday, so this window opens four hours later. */
const NOON = { days: ['fri'], startTime: '12:00', endTime: '13:00' };

describe('passes', () => {
  checkPasses([
    [
      'a plan that was changed into a wrong one starts nothing, and forgets intents that had no Job',
      {
        plan: of(
          { drain: { deleteEmptydirData: true, deleteLocalData: true } },
          running(['host-a']),
        ),
        nodes: [node('a')],
      },
      {
        conditions: [
          'Complete False NotReady plan is not valid and resolved',
          'Validated False Error spec.drain cannot specify both deleteEmptydirData and deleteLocalData',
          'LatestResolved True Version',
        ],
      },
    ],
    [
      'a running Job keeps its slot when its Plan becomes invalid',
      {
        plan: of({ postCompleteDelay: '-30s' }, running(['host-a'])),
        nodes: [node('a'), node('b')],
        jobs: [job('a')],
      },
      {
        conditions: [
          'Complete False NotReady plan is not valid and resolved',
          'Validated False Error spec.postCompleteDelay is negative',
          'LatestResolved True Version',
        ],
        applying: ['host-a'],
      },
    ],
    [
      'neither version nor channel',
      { plan: of({ version: '' }), nodes: [node('a')] },
      {
        conditions: [
          'Complete False NotReady plan is not valid and resolved',
          'Validated True PlanIsValid',
          'LatestResolved False Error cannot resolve plan: missing channel and version',
        ],
      },
    ],
    [
      'a channel that was not read yet',
      { plan: of({ version: '', channel: 'https://example.com' }), nodes: [node('a')] },
      {
        conditions: [
          'Complete False NotReady plan is not valid and resolved',
          'Validated True PlanIsValid',
        ],
      },
    ],
    [
      'a Plan that names a missing Secret is not valid',
      { plan: of({ secrets: [{ name: 's', path: 's' }] }), nodes: [node('a')] },
      {
        conditions: [
          'Complete False NotReady plan is not valid and resolved',
          'Validated False Error secrets "s" not found',
        ],
      },
    ],
    [
      'aborted: an intent without a Job is forgotten, and nothing is recorded twice',
      { plan: aborted(running(['host-a'])), nodes: [node('a'), node('b')] },
      {
        conditions: [
          'Complete False SyncJob',
          ...GOOD,
          'RefitAborted True Aborted the plan was aborted: wrong image',
        ],
        applying: [],
      },
    ],
    [
      'an aborted Plan lets its running Job end before it reports RefitAborted',
      { plan: aborted(running(['host-a'])), nodes: [node('a'), node('b')], jobs: [job('a')] },
      { conditions: ['Complete False SyncJob', ...GOOD], applying: ['host-a'] },
    ],
    [
      'aborted before it began',
      { plan: aborted(), nodes: [node('a')] },
      {
        conditions: [
          'Complete False Resolved',
          ...GOOD,
          'RefitAborted True Aborted the plan was aborted: wrong image',
        ],
      },
    ],
    [
      'a Plan whose abort is removed starts again, and the condition RefitAborted is removed',
      {
        plan: of({}, running([], [{ type: 'RefitAborted', status: 'True', message: 'aborted' }])),
        nodes: [node('a')],
      },
      { conditions: ['Complete False SyncJob', ...GOOD], applying: ['host-a'], signalled: ['a'] },
    ],
    [
      'outside of its window it waits, in the words of the original',
      { plan: of({ window: NOON }), nodes: [node('a')] },
      {
        conditions: [
          'Complete False Waiting current time is not within configured window',
          ...GOOD,
          'RefitWaits True Gate a slot is free, but no node may start yet; run: refit why --plan cattle/system-upgrade/p',
        ],
      },
    ],
    [
      'when it opens, the waiting is forgotten',
      {
        plan: of(
          { window: NOON },
          {
            ...running([], [{ type: 'RefitWaits', status: 'True' }]),
            conditions: [{ type: 'Complete', status: 'False', reason: 'Waiting', message: 'w' }],
          },
        ),
        nodes: [node('a', {}, 'False')],
        now: T0 + 4 * HOUR,
      },
      {
        conditions: [
          'Complete False Resolved',
          ...GOOD,
          'RefitWaits True Gate a slot is free, but no node may start yet; run: refit why --plan cattle/system-upgrade/p',
        ],
      },
    ],
    [
      'inside of it, it begins',
      { plan: of({ window: NOON }), nodes: [node('a')], now: T0 + 4 * HOUR },
      { applying: ['host-a'], signalled: ['a'] },
    ],
    [
      'a Plan that has begun goes on with the next node after its window closes',
      {
        plan: of({ window: NOON }, running(['host-a'])),
        nodes: [node('a'), node('b')],
        jobs: [job('a', [complete])],
      },
      { applying: ['host-b'], signalled: ['b'] },
    ],
    [
      'a Plan whose window has an unknown time zone is not valid',
      { plan: of({ window: { ...NOON, timeZone: 'Mars' } }), nodes: [node('a')] },
      {
        conditions: [
          'Complete False NotReady plan is not valid and resolved',
          'Validated False Error spec.window is invalid, timeZone "Mars" is unknown; use for example Europe/Berlin',
        ],
      },
    ],
    [
      'after its Job a node keeps its slot for as long as the plan says',
      {
        plan: of({ postCompleteDelay: '10m' }, running(['host-a'])),
        nodes: [node('a'), node('b')],
        jobs: [job('a', [complete])],
      },
      { applying: ['host-a'] },
    ],
    [
      'and no longer',
      {
        plan: of({ postCompleteDelay: '9m' }, running(['host-a'])),
        nodes: [node('a'), node('b')],
        jobs: [job('a', [complete])],
      },
      { applying: ['host-b'], signalled: ['b'] },
    ],
    [
      'conditions of others stay',
      { plan: of({}, { conditions: [{ type: 'Mine', status: 'True' }] }) },
      { conditions: ['Mine True ', 'Complete True Complete', ...GOOD, NOTHING] },
    ],
  ]);
});

test('the time of a condition moves with status or message, not with the reason', () => {
  const before = of(
    {},
    {
      ...running(['host-b']),
      conditions: [
        { type: 'Complete', status: 'False', reason: 'Resolved', lastUpdateTime: later(0) },
      ],
    },
  );
  const { plan } = pass({ plan: before, nodes: [node('a')] });
  expect(plan.status?.conditions?.map(({ lastUpdateTime }) => lastUpdateTime)).toEqual([
    later(0),
    later(10 * MINUTE),
    later(10 * MINUTE),
  ]);
});

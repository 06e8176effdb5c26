/**
 * Tests for which targets the download is checked before the first target starts: for some targets, for all targets, or
 * for no target.
 */

import { expect, test } from 'vitest';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { DownloadState } from '../model/downloads.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { downloadChecksOf } from '../turn/prefetch.ts';
import { targetsToCheck } from './checked-targets.ts';

const WORKERS = ['w1', 'w2', 'w3', 'w4'];
const ROOM = 1_000;
/** Returns the facts of a target with this answer about its download. */
const said = (
  answer: DownloadState['answer'],
  more: Partial<DownloadState> = {},
): Partial<TargetFacts> => ({
  downloads: { answer, room: ROOM, ...more },
});
const UNASKED = said('unasked');
const SMALL = said('possible', { bytes: ROOM });
const BIG = said('possible', { bytes: ROOM + 1 });

interface Given {
  readonly facts?: Readonly<Record<string, Partial<TargetFacts>>>;
  readonly policy?: Partial<RolloutPolicy>;
  readonly first?: RecordedState;
}

function snapshotOf({ facts = {}, first = 'pending' }: Given): Snapshot {
  const controllers = buildStage('controller', ['c1', 'c2', 'c3']);
  const workers = buildStage('worker', [
    buildTarget('w1', first),
    ...WORKERS.slice(1).map((name) => buildTarget(name)),
  ]);
  const all = Object.fromEntries(
    ['c1', 'c2', 'c3', ...WORKERS].map((name) => [name, { ...UNASKED, ...facts[name] }]),
  );
  return buildSnapshot(buildRollout([controllers, workers], { phase: 'running' }), all);
}

const named = (given: Given): string =>
  targetsToCheck(snapshotOf(given))(buildPolicy(given.policy))
    .map(({ target }) => target.name)
    .join(' ');

const WINDOW = { days: [], startMinute: 0, lengthMs: 1, timeZone: 'UTC' };

test.each<[string, Given, string]>([
  ['two of each stage', {}, 'c1 c2 w1 w2'],
  ['two of each platform, too', { facts: { w3: { platform: 'linux-arm64' } } }, 'c1 c2 w1 w2 w3'],
  ['all if the policy says so', { policy: { prefetch: 'all' } }, 'c1 c2 c3 w1 w2 w3 w4'],
  [
    'all of a plan with windows of its own',
    { policy: { planWindows: [WINDOW] } },
    'c1 c2 c3 w1 w2 w3 w4',
  ],
  ['none if the policy says so', { policy: { prefetch: 'none' } }, ''],
  ['none once a target has started', { first: 'intended' }, ''],
  [
    'those that cannot answer are left out',
    { facts: { c1: { downloads: undefined } } },
    'c2 c3 w1 w2',
  ],
  ['those that have the version are left out', { facts: { w1: { isThere: true } } }, 'c1 c2 w2 w3'],
  ['those that answered count', { facts: { w1: SMALL } }, 'c1 c2 w1 w2'],
  [
    'those with less room than was found to be needed, too',
    { facts: { w2: BIG } },
    'c1 c2 w1 w2 w3 w4',
  ],
  [
    'not those with enough room',
    { facts: { w1: BIG, w3: said('unasked', { room: ROOM + 1 }) } },
    'c1 c2 w1 w2 w4',
  ],
  [
    'those that do not tell their room',
    { facts: { w1: SMALL, w4: said('unasked', { room: undefined }) } },
    'c1 c2 w1 w2 w4',
  ],
  [
    'those with less room than was found to be needed, also once they have answered',
    { facts: { w1: BIG, w3: BIG, w4: SMALL } },
    'c1 c2 w1 w2 w3 w4',
  ],
  [
    'those without the reserve of the policy',
    { facts: { w1: SMALL }, policy: { agent: { diskReserveBytes: 1 } } },
    'c1 c2 w1 w2 w3 w4',
  ],
])('the downloads of these targets are checked: %s', (_what, given, names) => {
  expect(named(given)).toBe(names);
});

test('a node of two commands is asked once', () => {
  const first = buildStage('worker', ['w1']);
  const second = buildStage('worker', [{ ...buildTarget('w1'), key: '1/w1' }]);
  const stages = [first, { ...second, id: 'other', command: 1 }];
  const facts = buildSnapshot(buildRollout(stages, { phase: 'running' }), {
    w1: UNASKED,
  }).targets.get('w1');
  const snapshot = buildSnapshot(buildRollout(stages, { phase: 'running' }), {
    w1: UNASKED,
    '1/w1': { ...facts },
  });
  expect(targetsToCheck(snapshot)(buildPolicy())).toHaveLength(1);
});

function asked(given: Given, more: SnapshotChanges = {}): string[] {
  const snapshot = withParts(snapshotOf(given), more);
  return downloadChecksOf(assess(snapshot, buildPolicy(given.policy), T0)).map(
    ({ target }) => target.name,
  );
}

test('only targets that were not asked yet are asked, and only while the plan is to go on', () => {
  const facts = { c1: said('asked'), c2: said('impossible', { problem: '404' }) };
  expect(asked({ facts })).toEqual(['w1', 'w2']);
  // The policy has changed since w1 was asked.
  const older = {
    w1: said('possible', { policy: { diskReserveBytes: 5 } }),
    w2: said('possible', { policy: {} }),
  };
  expect(asked({ facts: { ...facts, ...older } })).toEqual(['w1']);
  const { rollout } = snapshotOf({});
  expect([
    asked({}, { plan: { controls: { ...NO_CONTROLS, abort: 'wrong' } } }),
    asked({}, { rollout: { ...rollout, phase: 'new' } }),
    asked({ policy: { problems: [because('PolicyUnreadable', 'no')] } }),
  ]).toEqual([[], [], []]);
  expect(asked({}, { plan: { controls: { ...NO_CONTROLS, paused: true } } })).toHaveLength(4);
});

/** Tests what the history stores about the versions before a run, and that its size is limited. */
import { expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import type { Observation } from '../model/facts.ts';
import type { RecordedState } from '../model/rollout.ts';
import { runVersions } from './run-versions.ts';

const OLD = 'v1.36.1+build.0';

function versionsOf(versions: Readonly<Record<string, string | undefined>>) {
  const facts = Object.fromEntries(
    Object.entries(versions).map(([name, version]) => [name, { version }]),
  );
  const rollout = buildRollout([buildStage('worker', Object.keys(versions))]);
  return runVersions(buildSnapshot(rollout, facts)).before;
}

const many = (count: number, version: string, prefix: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${prefix}${at}`, version]));

test('a small plan names every node', () => {
  expect(versionsOf({ w1: OLD, w2: OLD, w3: 'v1.36.0+build.0', w4: undefined })).toEqual([
    { role: 'worker', version: OLD, nodes: ['w1', 'w2'] },
    { role: 'worker', version: 'v1.36.0+build.0', nodes: ['w3'] },
    { role: 'worker', nodes: ['w4'] },
  ]);
});

test('of 15,000 nodes the most common version stands for all others', () => {
  expect(versionsOf({ ...many(15_000, OLD, 'w'), odd: 'v1.36.0+build.0' })).toEqual([
    { role: 'worker', version: OLD, others: true },
    { role: 'worker', version: 'v1.36.0+build.0', nodes: ['odd'] },
  ]);
});

test('if the other versions do not fit either, no version stands for nodes without a name', () => {
  const before =
    versionsOf({ ...many(8000, OLD, 'a'), ...many(7000, 'v1.36.0+build.0', 'b') }) ?? [];
  expect(before.some(({ others }) => others)).toBe(false);
  expect(before.flatMap(({ nodes = [] }) => nodes)).toHaveLength(500);
});

const SEEN = { attempt: 'a', since: '2026-08-21T10:00:00Z' };

test.each<[string, RecordedState, Observation, boolean]>([
  ['waits', 'pending', { kind: 'none' }, true],
  ['has no signal yet', 'intended', { kind: 'none' }, true],
  ['has not answered its signal', 'intended', { kind: 'sent', ...SEEN }, true],
  [
    'downloads',
    'intended',
    { kind: 'working', step: 'Downloading', cancellable: true, ...SEEN },
    true,
  ],
  ['refused the work', 'intended', { kind: 'failed', message: '', refused: true, ...SEEN }, true],
  ['was begun by an earlier process', 'intended', { kind: 'none', begun: true }, false],
  ['restarts', 'intended', { kind: 'working', step: 'Restart', ...SEEN }, false],
  ['has succeeded', 'intended', { kind: 'succeeded', ...SEEN }, false],
  ['is done', 'done', { kind: 'none' }, false],
])(
  'of a target that %s, the version of the run counts as its version before only if the run cannot have installed it',
  (_title, state, observation, isRecorded) => {
    const stage = buildStage('controller', [buildTarget('c1', state)]);
    const facts = { c1: { version: stage.version, isThere: true, observation } };
    expect(runVersions(buildSnapshot(buildRollout([stage]), facts)).before).toEqual([
      { role: 'controller', nodes: ['c1'], ...(isRecorded && { version: stage.version }) },
    ]);
  },
);

test('the version that a record on the node names counts, although the node runs the new version by now', () => {
  const facts = { w1: { version: 'v1.36.3+build.0', earlierVersion: OLD } };
  const rollout = buildRollout([buildStage('worker', [buildTarget('w1', 'done')])]);
  expect(runVersions(buildSnapshot(rollout, facts)).before).toEqual([
    { role: 'worker', version: OLD, nodes: ['w1'] },
  ]);
});

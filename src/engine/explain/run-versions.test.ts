/** Tests what the history stores about the versions before a run, and that its size is limited. */
import { expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage, PAYLOAD } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { LONGEST_URL } from '../../api/refit/node-rollout.ts';
import type { Observation, TargetFacts } from '../model/facts.ts';
import type { RecordedState, Stage } from '../model/rollout.ts';
import { runVersions } from './run-versions.ts';

const OLD = 'v1.36.1+build.0';

function versionsOf(versions: Readonly<Record<string, string | undefined>>) {
  const facts = Object.fromEntries(
    Object.entries(versions).map(([name, version]) => [name, { version }]),
  );
  const rollout = buildRollout([buildStage('worker', Object.keys(versions))]);
  return runVersions(buildSnapshot(rollout, facts)).before;
}

const many = (count: number, version: string | undefined, prefix: string) =>
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

test('the version of most nodes comes first', () => {
  expect(versionsOf({ w1: 'v1.36.0+build.0', w2: OLD, w3: OLD })).toEqual([
    { role: 'worker', version: OLD, nodes: ['w2', 'w3'] },
    { role: 'worker', version: 'v1.36.0+build.0', nodes: ['w1'] },
  ]);
});

test('as many nodes as the record has room for have names', () => {
  const before = versionsOf({ ...many(400, OLD, 'a'), ...many(100, 'v1.36.0+build.0', 'b') });
  expect(before?.map(({ nodes }) => nodes?.length)).toEqual([400, 100]);
  const others = versionsOf({ ...many(600, OLD, 'a'), ...many(500, 'v1.36.0+build.0', 'b') });
  expect(others?.map(({ nodes, others }) => nodes?.length ?? others)).toEqual([true, 500]);
});

test('the room for names is shared among the other versions, and a version without a name has no entry', () => {
  const odd = ['v1.35.1', 'v1.35.2', 'v1.35.3'].map((version, at) =>
    many([400, 300, 200][at] ?? 0, version, `${at}-`),
  );
  const before = versionsOf({ ...many(8000, OLD, 'a'), ...odd[0], ...odd[1], ...odd[2] });
  expect(before?.map(({ version, nodes }) => [version, nodes?.length])).toEqual([
    ['v1.35.1', 400],
    ['v1.35.2', 100],
  ]);
});

test('an unknown version never stands for nodes without a name', () => {
  const before = versionsOf({ ...many(600, undefined, 'a'), ...many(10, OLD, 'b') }) ?? [];
  expect(before).toEqual([
    { role: 'worker', nodes: Array.from({ length: 500 }, (_, at) => `a${at}`) },
  ]);
  expect(versionsOf(many(501, undefined, 'a'))?.map(({ nodes }) => nodes?.length)).toEqual([500]);
});

test('each role has room for 25 versions', () => {
  const versions = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`w${at}`, `v1.35.${at}`] as const),
    );
  expect(versionsOf(versions(25))?.map(({ nodes = [] }) => nodes.join())).toEqual(
    Object.keys(versions(25)),
  );
  // The version of most nodes would stand for nodes of the versions without an entry.
  expect(versionsOf(versions(27))?.map(({ nodes = [] }) => nodes.join())).toEqual(
    Object.keys(versions(26)).slice(1),
  );
});

test.each([
  ['names of controllers leave less room for workers', 300, 250, [[300], [true]]],
  ['controllers without names leave all room for workers', 501, 500, [[true], [500]]],
])('the two roles share the room for names: %s', (_title, controllers, workers, expected) => {
  const stages = [
    buildStage('controller', Object.keys(many(controllers, OLD, 'c'))),
    buildStage('worker', Object.keys(many(workers, OLD, 'w'))),
  ];
  const facts = { ...many(controllers, OLD, 'c'), ...many(workers, OLD, 'w') };
  const known = Object.fromEntries(
    Object.entries(facts).map(([name, version]) => [name, { version }]),
  );
  const { before = [] } = runVersions(buildSnapshot(buildRollout(stages), known));
  const entries = (role: string) =>
    before.flatMap((entry) => (entry.role === role ? [entry.nodes?.length ?? entry.others] : []));
  expect([entries('controller'), entries('worker')]).toEqual(expected);
});

test('of several stages with the same node, the first one that changes its version counts', () => {
  const targets = [buildTarget('w1', 'done')];
  const stages = [
    buildStage('worker', targets, { keepsVersion: true }),
    buildStage('worker', targets, { command: 1 }),
    buildStage('worker', targets, { command: 2 }),
  ];
  const snapshot = buildSnapshot(buildRollout(stages), {
    '0/worker/w1': { earlierVersion: 'v1.36.0+first.0' },
    '1/worker/w1': { earlierVersion: OLD },
    '2/worker/w1': { earlierVersion: 'v1.36.2+last.0' },
  });
  expect(runVersions(snapshot).before).toEqual([{ role: 'worker', version: OLD, nodes: ['w1'] }]);
});

const LONG = `v1.36.1+${'x'.repeat(120)}`;

test.each<[string, Partial<TargetFacts>, string | undefined]>([
  ['shows an older version', { version: OLD }, OLD],
  ['shows the version of the run', { version: 'v1.36.3+x.2' }, undefined],
  ['shows a later version of the plan', { version: 'v1.36.5+x.2', isThere: true }, undefined],
  ['shows no version', { isThere: true }, undefined],
  ['shows a version of 128 characters', { version: LONG }, LONG],
  ['shows a longer version', { version: `${LONG}x` }, undefined],
  [
    'reports the version before',
    { observation: { kind: 'succeeded', attempt: 'a', since: 'b', report: { from: OLD } } },
    OLD,
  ],
])('the version before the run of a node that is done and %s', (_title, facts, version) => {
  const rollout = buildRollout([buildStage('worker', [buildTarget('w1', 'done')])]);
  expect(runVersions(buildSnapshot(rollout, { w1: facts })).before).toEqual([
    { role: 'worker', nodes: ['w1'], ...(version !== undefined && { version }) },
  ]);
});

const downloadsOf = (...stages: readonly Stage[]) =>
  runVersions(buildSnapshot(buildRollout(stages))).downloads;

test('a run lists what its nodes download, each version and platform once', () => {
  const arm = { 'linux-arm64': { url: 'https://example.com/arm' } };
  const stages = [
    buildStage('controller', ['c1']),
    buildStage('worker', ['w1']),
    buildStage('worker', ['w1'], { command: 1, version: 'v1.37.0', payloads: arm }),
  ];
  expect(downloadsOf(...stages)).toEqual([
    { version: 'v1.36.3+x.2', platform: 'linux-amd64', ...PAYLOAD },
    { version: 'v1.37.0', platform: 'linux-arm64', url: 'https://example.com/arm' },
  ]);
});

test.each<[string, Stage]>([
  ['keeps the version of its nodes', buildStage('worker', ['w1'], { keepsVersion: true })],
  ['has no targets', buildStage('worker', [])],
  [
    'has no version, because an edit made the plan invalid',
    buildStage('worker', ['w1'], { version: '' }),
  ],
])('the record of a run has no downloads of a stage that %s', (_title, stage) => {
  expect(downloadsOf(stage)).toBeUndefined();
});

test('a run without targets has neither versions nor downloads', () => {
  const snapshot = buildSnapshot(buildRollout([buildStage('worker', [])]));
  expect(Object.keys(runVersions(snapshot))).toEqual([]);
  const unpaid = buildStage('worker', ['w1'], { payloads: {} });
  expect(Object.keys(runVersions(buildSnapshot(buildRollout([unpaid]))))).toEqual(['before']);
});

test.each<[string, boolean, string, string, string, string]>([
  ['each text is as long as is allowed', true, 'v', 'p', 'u', 's'],
  ['the version is too long', false, 'v+', 'p', 'u', 's'],
  ['the platform is too long', false, 'v', 'p+', 'u', 's'],
  ['the address is too long', false, 'v', 'p', 'u+', 's'],
  ['the checksum is too long', false, 'v', 'p', 'u', 's+'],
])('whether a download is recorded: %s', (_title, isRecorded, version, platform, url, sha256) => {
  const stage = buildStage('worker', ['w1'], {
    version: version.padStart(127 + version.length, 'v'),
    payloads: {
      [platform.padStart(63 + platform.length, 'p')]: {
        url: url.padStart(LONGEST_URL - 1 + url.length, 'u'),
        sha256: sha256.padStart(63 + sha256.length, 's'),
      },
    },
  });
  expect(downloadsOf(stage)?.length).toBe(isRecorded ? 1 : undefined);
});

test('a run records at most twenty downloads', () => {
  const payloads = Object.fromEntries(
    Array.from({ length: 30 }, (_, at) => [`linux-${at}`, PAYLOAD]),
  );
  const stage = buildStage('worker', ['w1'], { payloads });
  expect(downloadsOf(stage)?.map(({ platform }) => platform)).toEqual(
    Object.keys(payloads).slice(0, 20),
  );
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
  ['failed at its work', 'intended', { kind: 'failed', message: '', ...SEEN }, false],
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

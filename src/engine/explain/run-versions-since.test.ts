/** Tests what the record of a run learns while the run goes on: later reports of nodes, and downloads of an edited plan. */

import { expect, test } from 'vitest';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { buildRelease, reportedPartOf } from '../../../test/support/builders/releases.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage, PAYLOAD } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { RecordedState, Stage } from '../model/rollout.ts';
import { downloadsSince, versionsBeforeSince } from './run-versions.ts';

type Before = NonNullable<NodeRolloutRun['before']>;

/** The version that the kubelet of a release reports, and the version of the release. */
const RELEASE = buildRelease('v1.36.1');
const PART = reportedPartOf(RELEASE);

/** Returns facts of nodes that report the version before their upgrade. */
const reporting = (reports: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(
    Object.entries(reports).map(([name, from]) => [
      name,
      { observation: { ...succeeded(), report: { from } } },
    ]),
  );

/** Returns the record, after these workers that are done have reported the versions before their upgrades. */
function since(
  reports: Readonly<Record<string, string | undefined>>,
  earlier: Before,
  state: RecordedState = 'done',
  more: Partial<Stage> = {},
) {
  const targets = Object.keys(reports).map((name) => buildTarget(name, state));
  const rollout = buildRollout([buildStage('worker', targets, more)]);
  return versionsBeforeSince(buildSnapshot(rollout, reporting(reports)), earlier);
}

const worker = (version: string | undefined, ...nodes: string[]): Before[number] => ({
  role: 'worker',
  ...(version === undefined ? {} : { version }),
  nodes,
});

test('nothing recorded stays nothing, whatever nodes report', () => {
  expect(since({ w1: RELEASE }, [])).toBeUndefined();
  const snapshot = buildSnapshot(buildRollout([]));
  expect(versionsBeforeSince(snapshot)).toBeUndefined();
});

test('a report names the build of a version that was recorded without it, or that was unknown', () => {
  expect(since({ w1: RELEASE, w2: undefined }, [worker(PART, 'w1', 'w2')])).toEqual([
    worker(RELEASE, 'w1'),
    worker(PART, 'w2'),
  ]);
  expect(
    since({ w1: buildRelease('v1.35.4', 1), w2: undefined }, [worker(undefined, 'w2', 'w1')]),
  ).toEqual([worker(undefined, 'w2'), worker(buildRelease('v1.35.4', 1), 'w1')]);
});

test('nodes whose versions have become known join the entry of this version, but not that of the other role', () => {
  const controllers: Before[number] = { role: 'controller', version: RELEASE, nodes: ['w1'] };
  const earlier = [controllers, worker(RELEASE, 'w3'), worker(PART, 'w1')];
  expect(since({ w1: RELEASE }, earlier)).toEqual([controllers, worker(RELEASE, 'w3', 'w1')]);
});

test('entries that stand for nodes without names stay, and nothing joins them', () => {
  const earlier: Before = [
    { role: 'controller', version: PART, others: true },
    { role: 'worker', version: RELEASE, others: true },
    worker(PART, 'w1'),
  ];
  expect(since({ w1: RELEASE }, earlier)).toEqual([...earlier.slice(0, 2), worker(RELEASE, 'w1')]);
  const odd = { role: 'worker', version: PART, others: true, nodes: ['w1'] } as const;
  expect(since({ w1: RELEASE }, [{ ...odd, nodes: ['w1'] }])).toEqual([odd]);
});

test('an entry without nodes stays as it is', () => {
  const earlier: Before = [{ role: 'worker', version: PART }];
  expect(since({ w1: RELEASE }, earlier)).toEqual(earlier);
  expect(since({ w1: RELEASE }, [{ role: 'worker', version: PART }, worker(PART, 'w2')])).toEqual([
    worker(PART, 'w2'),
  ]);
});

test.each<[string, string, Before, RecordedState?, Partial<Stage>?]>([
  ['replaces no version that names a build', RELEASE, [worker(buildRelease('v1.36.1', 9), 'w1')]],
  [
    'of another release is no build of the recorded version',
    buildRelease('v1.35.4', 1),
    [worker(PART, 'w1')],
  ],
  ['of a node that the entry does not name does not count', RELEASE, [worker(PART, 'w2')]],
  ['of a pending target belongs to an earlier run', RELEASE, [worker(PART, 'w1')], 'pending'],
  [
    'of a target of the other role does not count',
    RELEASE,
    [{ role: 'controller', version: PART, nodes: ['w1'] }],
  ],
  [
    'of a stage that keeps the version does not count',
    RELEASE,
    [worker(PART, 'w1')],
    'done',
    { keepsVersion: true },
  ],
  [
    'with the version of the run comes from a second attempt',
    'v1.36.3+x.2',
    [worker(undefined, 'w1')],
  ],
  [
    'of more than 128 characters does not count',
    `v1+${'x'.repeat(126)}`,
    [worker(undefined, 'w1')],
  ],
])('the report of a node %s', (_title, from, earlier, state, more) => {
  expect(since({ w1: from }, earlier, state, more)).toEqual(earlier);
});

test('a report of 128 characters counts, also if only another stage of the plan has its version', () => {
  const from = `v1+${'x'.repeat(125)}`;
  expect(since({ w1: from }, [worker(undefined, 'w1')])).toEqual([worker(from, 'w1')]);
  const stages = [
    buildStage('worker', [buildTarget('w1', 'done')], { version: 'v1.37.0' }),
    buildStage('worker', [], { command: 1, version: RELEASE }),
  ];
  const snapshot = buildSnapshot(buildRollout(stages), reporting({ w1: RELEASE }));
  expect(versionsBeforeSince(snapshot, [worker(PART, 'w1')])).toEqual([worker(PART, 'w1')]);
});

test('of several reports of a node, that of the first stage counts', () => {
  const stages = [0, 1].map((command) =>
    buildStage('worker', [buildTarget('w1', 'done')], { command }),
  );
  const snapshot = buildSnapshot(buildRollout(stages), {
    ...reporting({ '0/worker/w1': RELEASE, '1/worker/w1': buildRelease('v1.36.1', 5) }),
  });
  expect(versionsBeforeSince(snapshot, [worker(PART, 'w1')])).toEqual([worker(RELEASE, 'w1')]);
});

test('if the reports would need more entries than the record may have, the record stays', () => {
  const reports = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`w${at}`, buildRelease(`v1.35.${at}`)]),
    );
  const earlier = (count: number) => [worker(undefined, ...Object.keys(reports(count)))];
  expect(since(reports(50), earlier(50))).toHaveLength(50);
  expect(since(reports(51), earlier(51))).toEqual(earlier(51));
});

const download = (version: string, url = PAYLOAD.url) => ({
  version,
  platform: 'linux-amd64',
  ...PAYLOAD,
  url,
});

test('the downloads of an edited plan come first, and replace those of the same version and platform', () => {
  const stages = [buildStage('worker', ['w1'])];
  const old = download('v1.36.3+x.2', 'https://example.com/old');
  const arm = { ...old, platform: 'linux-arm64' };
  expect(downloadsSince({ stages })).toEqual([download('v1.36.3+x.2')]);
  expect(downloadsSince({ stages }, [download('v1.36.2'), old, arm])).toEqual([
    download('v1.36.3+x.2'),
    download('v1.36.2'),
    arm,
  ]);
});

test('a run without downloads has no list of them', () => {
  expect(downloadsSince({ stages: [] })).toBeUndefined();
  expect(downloadsSince({ stages: [] }, [download('v1.36.2')])).toEqual([download('v1.36.2')]);
});

test('at most twenty downloads are kept, those of the present plan first', () => {
  const earlier = Array.from({ length: 30 }, (_, at) => download(`v1.35.${at}`));
  const kept = downloadsSince({ stages: [buildStage('worker', ['w1'])] }, earlier);
  expect(kept?.map(({ version }) => version)).toEqual([
    'v1.36.3+x.2',
    ...earlier.slice(0, 19).map(({ version }) => version),
  ]);
});

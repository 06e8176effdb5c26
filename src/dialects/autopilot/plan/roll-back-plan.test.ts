/** Tests which nodes of a run of k0s can be rolled back, including nodes that do not show their present version yet. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import type { Node } from '../../../kube/resources.ts';
import { encodeReport, type SignalCommand } from '../../../signal/annotations.ts';
import { keptFileUrl } from '../../../signal/kept-file.ts';
import { type ControlNode, ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import {
  aheadWorkers,
  type GoingBack,
  planBack,
  presentNodes,
  waysBack,
} from './roll-back-plan.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const OTHER = 'v1.36.3+k0s.5';
const SENT = '2026-11-20T08:00:01Z';

interface Row {
  readonly shows?: string;
  /** The status of the last signal of the worker; undefined if the worker has no signal. */
  readonly status?: string;
  readonly command?: Partial<SignalCommand>;
  readonly planUid?: string;
  /** The version that the agent reported as running before the update. */
  readonly from?: string;
  readonly rolledBack?: boolean;
  readonly isGone?: boolean;
  readonly before?: NodeRolloutRun['before'];
  /** The version that the controller shows. */
  readonly server?: string;
  /** The version that the worker ran before each later run, the newest run first. */
  readonly later?: readonly string[];
}

function waysOf(row: Row) {
  const { shows, status, command, planUid = 'plan-uid', before, from, rolledBack } = row;
  const { server = NEW, later = [] } = row;
  const signal =
    status === undefined ? {} : buildSignal({ status, created: SENT, command: { ...command } });
  const report =
    from === undefined
      ? {}
      : encodeReport({ created: SENT, from, ...(rolledBack === undefined ? {} : { rolledBack }) });
  const annotations = { ...signal, ...report, [ROLLOUT_ANNOTATION]: `${planUid}/created` };
  const worker: Node = buildNode('w1', { annotations });
  const nodeInfo = shows === undefined ? {} : { nodeInfo: { kubeletVersion: shows } };
  const controller = buildControlNode('c1');
  const shown: ControlNode = { ...controller, status: { k0sVersion: server } };
  const node: Node = { ...worker, status: { ...worker.status, ...nodeInfo } };
  const world = buildWorld([shown], row.isGone === true ? [] : [node]);
  const run: NodeRolloutRun = {
    id: 'id1',
    planUid: 'plan-uid',
    started: '2026-11-20T08:00:00Z',
    phase: 'failed',
    counts: { total: 2, done: 2, failed: 0, inProgress: 0, pending: 0, skipped: 0 },
    before: [
      ...(before ?? [{ role: 'worker', version: OLD, nodes: ['w1'] }]),
      { role: 'controller', version: OLD, nodes: ['c1'] },
    ],
    downloads: [{ version: NEW, platform: 'linux-amd64', url: 'https://example.com/new' }],
  };
  const laterRuns = later.map((version) => ({
    ...run,
    id: 'id2',
    started: '2026-11-21T08:00:00Z',
    before: [{ role: 'worker' as const, version, nodes: ['w1'] }],
  }));
  return waysBack(run, presentNodes(world), laterRuns);
}

const LAGS = `w1 reported that ${NEW} is installed, but still shows ${OLD}`;
const KUBELET = 'v1.36.3+k0s';
const UNBUILT: NodeRolloutRun['before'] = [{ role: 'worker', version: KUBELET, nodes: ['w1'] }];
const UNTOLD = 'w1: its present version is unknown';
const UNRECORDED = 'w1: no record names the version that it ran before';
const UNNAMED: NodeRolloutRun['before'] = [{ role: 'worker', nodes: ['w1'] }];

/**
 * Each row ends with the result for the worker: `moves`, or the sentence that explains why it stays. The last value is
 * true if no node may be rolled back until more is known about the worker.
 */
test.each<[string, Row, string, boolean]>([
  ['runs the new version', { shows: NEW, status: 'Completed' }, 'moves', false],
  ['does not show the new version yet', { shows: OLD, status: 'Completed' }, LAGS, true],
  [
    'does not show it yet, and no controller moved',
    { shows: OLD, status: 'Completed', server: OLD },
    LAGS,
    true,
  ],
  ['was never signalled', { shows: OLD }, `w1 still runs ${OLD}`, false],
  ['failed', { shows: OLD, status: 'Failed' }, `w1 still runs ${OLD}`, false],
  [
    'got a bundle of images only',
    { shows: OLD, status: 'Completed', command: { kind: 'airgapupdate' } },
    `w1 still runs ${OLD}`,
    false,
  ],
  [
    'completed an earlier run that installed what it shows',
    { shows: OLD, status: 'Completed', command: { version: OLD } },
    `w1 still runs ${OLD}`,
    false,
  ],
  [
    'completed a signal of another plan',
    { shows: OLD, status: 'Completed', planUid: 'other' },
    `w1 still runs ${OLD}`,
    false,
  ],
  [
    'shows only the version of Kubernetes, which both releases have',
    { shows: KUBELET, status: 'Completed' },
    'moves',
    false,
  ],
  [
    'failed, shows only the version of Kubernetes, and did not report which build runs',
    { shows: KUBELET, status: 'Failed' },
    'moves',
    false,
  ],
  [
    'failed before its agent changed anything',
    { shows: KUBELET, status: 'FailedDownload', from: OLD },
    `w1 still runs ${OLD}`,
    false,
  ],
  [
    'failed, and whose agent restored the earlier build',
    { shows: KUBELET, status: 'Failed', from: OLD, rolledBack: true },
    `w1 still runs ${OLD}`,
    false,
  ],
  [
    'failed, and whose agent could not restore the earlier build',
    { shows: KUBELET, status: 'Failed', from: OLD, rolledBack: false },
    'moves',
    false,
  ],
  [
    'is at the restart of its service',
    { shows: KUBELET, status: 'Restart', from: OLD },
    'moves',
    false,
  ],
  [
    'belongs to another plan, and shows only the version of Kubernetes',
    { shows: KUBELET, planUid: 'other' },
    `w1 still runs ${OLD}`,
    false,
  ],
  [
    'has a record without a build, and its agent reported no build',
    { shows: KUBELET, status: 'Completed', before: UNBUILT },
    'w1: no record names the build of v1.36.3+k0s that it ran before',
    true,
  ],
  [
    'has a record without a build, and its agent reported the build',
    { shows: KUBELET, status: 'Completed', before: UNBUILT, from: OLD },
    'moves',
    false,
  ],
  [
    'was moved by a later run to what it shows',
    { shows: NEW, status: 'Completed', later: [OTHER] },
    'w1 was moved later by run id2, which started at 2026-11-21T08:00:00Z',
    false,
  ],
  [
    'was not moved by a later run',
    { shows: NEW, status: 'Completed', later: [NEW] },
    'moves',
    false,
  ],
  [
    'was moved by a later run, and went back from it',
    { shows: NEW, status: 'Completed', later: [OTHER, NEW] },
    'moves',
    false,
  ],
  [
    'completed a later run to another release of the same version of Kubernetes',
    {
      shows: 'v1.36.3+k0s',
      status: 'Completed',
      command: { version: OTHER },
      planUid: 'other',
      before: [{ role: 'worker', version: 'v1.36.2+k0s.0', nodes: ['w1'] }],
    },
    `w1 runs ${OTHER}, which this run did not install`,
    false,
  ],
  ['shows no version', { status: 'Completed' }, UNTOLD, true],
  ['shows no version, and no controller goes back', { server: OLD }, UNTOLD, true],
  [
    'has no recorded version, and shows a version of no run',
    { shows: OLD, before: UNNAMED },
    `w1 runs ${OLD}, which this run did not install`,
    false,
  ],
  ['left the cluster', { isGone: true }, 'w1: the cluster has no Node with this name', true],
  ['moved from a version that is not recorded', { shows: NEW, before: UNNAMED }, UNRECORDED, true],
])('a worker that %s', (_name, row, expected, isUndecided) => {
  const ways = waysOf(row);
  const [move] = ways.moves.filter(({ name }) => name === 'w1');
  expect(move === undefined ? (ways.unable[0]?.sentence ?? ways.left[0]) : 'moves').toBe(expected);
  if (move !== undefined) expect(move.to).toBe(OLD);
  expect(ways.unable.map(({ name }) => name)).toEqual(isUndecided ? ['w1'] : []);
});

const MINOR = 'v1.37.0+k0s.0';

test.each<[string, Partial<GoingBack>, Partial<GoingBack> | undefined, string[]]>([
  ['to a newer minor version with its controllers', { to: MINOR }, { to: MINOR }, ['w1']],
  ['to a newer minor version that its controllers have left', { to: MINOR }, { from: MINOR }, []],
  ['to a newer minor version, and no controller moves', { to: MINOR }, undefined, []],
  ['to a newer patch', { to: 'v1.36.4+k0s.0' }, {}, []],
  ['to an older minor version', { to: 'v1.35.1+k0s.0' }, {}, []],
])('a worker that goes %s', (_name, worker, controller, names) => {
  const move = { platform: undefined, from: NEW, to: OLD };
  const moves: GoingBack[] = [
    { ...move, role: 'worker', name: 'w1', ...worker },
    ...(controller ? [{ ...move, role: 'controller' as const, name: 'c1', ...controller }] : []),
  ];
  expect(aheadWorkers({ moves, left: [], unable: [] }).map(({ name }) => name)).toEqual(names);
});

const SUM = 'a'.repeat(64);
const AT = '2026-11-20T10:00:00Z';
const KEEPS: GoingBack = {
  role: 'worker',
  name: 'w1',
  platform: 'linux-amd64',
  from: NEW,
  to: OLD,
  kept: { version: OLD, sha256: SUM },
};

function planOf(moves: readonly GoingBack[], platforms: readonly string[] = []) {
  const downloads = platforms.map((platform) => ({
    version: OLD,
    platform,
    url: 'https://example.com/old',
  }));
  const parts = { run: 'plan-uid/id1', downloads, concurrent: 1 };
  return planBack({ moves, left: [], unable: [] }, parts, AT).spec.commands;
}

test('each platform is taken from its recorded download, or from the file that its nodes keep', () => {
  const other = { ...KEEPS, name: 'w2', platform: 'linux-arm64' };
  const download = { url: 'https://example.com/old' };
  const kept = { url: keptFileUrl(OLD), sha256: SUM };
  expect(planOf([KEEPS, other], ['linux-arm64'])).toMatchObject([
    { k0supdate: { platforms: { 'linux-amd64': kept, 'linux-arm64': download } } },
  ]);
  const third = { ...other, kept: { version: OLD, sha256: 'b'.repeat(64) } };
  expect(planOf([KEEPS, third])).toMatchObject([
    { k0supdate: { platforms: { 'linux-arm64': { ...kept, sha256: 'b'.repeat(64) } } } },
  ]);
});

test.each<[string, Partial<GoingBack>, string]>([
  ['announces no kept file', { kept: undefined }, 'the agent does not say whether the host keeps'],
  [
    'keeps another version',
    { kept: { version: OTHER, sha256: SUM } },
    `the agent last announced that its host keeps ${OTHER} instead of ${OLD}`,
  ],
  [
    'has removed the file',
    { kept: { version: OLD, sha256: SUM, gone: 'DiskFull' } },
    `the agent removed ${OLD} to make room for a download`,
  ],
  [
    'keeps the file no longer than until now',
    { kept: { version: OLD, sha256: SUM, until: AT } },
    'because the retention time is over',
  ],
  [
    'does not say which sha256 the file has',
    { kept: { version: OLD } },
    `the agent does not say which sha256 the kept ${OLD} has`,
  ],
  ['has no platform', { platform: undefined }, 'w2 has no labels that say its platform'],
])('no Plan is made without a download if a node %s', (_name, more, message) => {
  expect(() => planOf([KEEPS, { ...KEEPS, name: 'w2', ...more }])).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(/^no recorded run downloaded .* w2[: ]/),
      text: expect.stringContaining(message),
    }),
  );
});

/** Tests which spec rolls a failed run of k0s back, and what prevents the leader from writing it. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { recorded, statusOf } from '../../../../test/support/builders/views.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import { ORIGIN_ANNOTATION } from '../../../api/autopilot/plan.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import { annotated } from '../../../kube/resources.ts';
import { encodePresence } from '../../../signal/agent-presence.ts';
import { keptFileUrl } from '../../../signal/kept-file.ts';
import { AGENT_ANNOTATION, type ControlNode, ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { planBackOf } from './roll-back-by-leader.ts';
import { resolve } from './rollout.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const NAMES = ['w1', 'w2', 'w3'];
const LAGS = `w1 reported that ${NEW} is installed, but still shows ${OLD}`;
const COUNTS = { total: 3, done: 1, failed: 1, inProgress: 0, pending: 1, skipped: 0 };

interface Row {
  /** The version that each node runs now, by name. All other nodes run the old version. */
  readonly present?: Readonly<Record<string, string>>;
  readonly servers?: string;
  readonly before?: NodeRolloutRun['before'];
  readonly downloads?: NodeRolloutRun['downloads'];
  readonly isOfChannel?: boolean;
  /** The name of the node whose agent reported that the new version is installed. */
  readonly reported?: string;
  /** The sha256 of the old binary that each worker keeps, by name; absent if it keeps none. */
  readonly kept?: Readonly<Record<string, string>>;
  /** The version of the file that each of these workers announced last. */
  readonly keptVersion?: string;
  /** Milliseconds since the end of the run. */
  readonly later?: number;
}

function backOf(row: Row) {
  const { present = {}, servers = NEW, before, downloads, isOfChannel, reported, later = 0 } = row;
  const { kept = {}, keptVersion = OLD } = row;
  const k0supdate = buildUpdate({
    targets: { workers: { ...listed(...NAMES), limits: { concurrent: 2 } } },
  });
  const states = { w1: 'SignalApplyFailed', w2: 'SignalCompleted', w3: 'SignalPending' };
  const made = buildPlan(
    { commands: [{ k0supdate }] },
    statusOf('ApplyFailed', [], recorded(states)),
  );
  const plan = isOfChannel === true ? annotated(made, { [ORIGIN_ANNOTATION]: '{}' }) : made;
  const workers = NAMES.map((name) => {
    const signal = { ...buildSignal({ status: 'Completed' }), [ROLLOUT_ANNOTATION]: 'plan-uid/x' };
    const sha256 = kept[name];
    const announced: Record<string, string> =
      sha256 === undefined ? {} : { [AGENT_ANNOTATION]: announcementOf(sha256, keptVersion) };
    const annotations = { ...announced, ...(name === reported ? signal : {}) };
    const node = buildNode(name, { annotations });
    const kubeletVersion = present[name] ?? OLD;
    return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion } } };
  });
  const controller = buildControlNode('c1');
  const server: ControlNode = {
    ...controller,
    status: { ...controller.status, k0sVersion: servers },
  };
  const world = buildWorld([server], workers);
  const run: NodeRolloutRun = {
    id: 'id1',
    planUid: 'plan-uid',
    started: '2026-11-20T08:00:00Z',
    ended: rfc3339(T0),
    phase: 'failed',
    counts: COUNTS,
    before: before ?? [{ role: 'worker', version: OLD, nodes: NAMES }],
    downloads: [{ version: NEW, platform: 'linux-amd64', url: 'https://example.com/new' }],
  };
  const old = { version: OLD, platform: 'linux-amd64', url: 'https://example.com/old' };
  const earlier: NodeRolloutRun = { ...run, id: 'id0', downloads: downloads ?? [old] };
  const rollout = resolve(plan, world, T0);
  return planBackOf({ plan, rollout, world, run, history: [run, earlier] }, T0 + later);
}

function announcementOf(sha256: string, version: string): string {
  return encodePresence({
    version: '0.9.0',
    since: '2026-11-20T07:00:00Z',
    kept: { version, sha256 },
  });
}

const SUM = 'a'.repeat(64);
const OTHER_SUM = 'b'.repeat(64);

test('without a recorded download, the Plan names the file that all nodes of the platform keep', () => {
  const present = { w1: NEW, w2: NEW };
  expect(
    backOf({ present, downloads: [], kept: { w1: SUM, w2: SUM, w3: OTHER_SUM } }),
  ).toMatchObject({
    names: ['w2', 'w1'],
    plan: {
      spec: {
        commands: [
          { k0supdate: { platforms: { 'linux-amd64': { url: keptFileUrl(OLD), sha256: SUM } } } },
        ],
      },
    },
  });
});

test('a recorded download is used although nodes keep another file', () => {
  expect(backOf({ present: { w2: NEW }, kept: { w2: SUM } })).toMatchObject({
    plan: {
      spec: {
        commands: [
          { k0supdate: { platforms: { 'linux-amd64': { url: 'https://example.com/old' } } } },
        ],
      },
    },
  });
});

test('nodes that moved go back, those that failed come last, and the others are left alone', () => {
  const back = backOf({ present: { w1: NEW, w2: NEW } });
  expect(back).toMatchObject({
    names: ['w2', 'w1'],
    plan: {
      metadata: { uid: 'plan-uid' },
      spec: {
        id: expect.stringMatching(/^back-/),
        commands: [
          {
            k0supdate: {
              version: OLD,
              platforms: { 'linux-amd64': { url: 'https://example.com/old' } },
              targets: {
                workers: {
                  discovery: { static: { nodes: ['w2', 'w1'] } },
                  limits: { concurrent: 2 },
                },
              },
            },
          },
        ],
      },
    },
  });
});

test.each<[string, Row, string]>([
  ['no node has moved', {}, 'no node goes back; w1 still runs v1.36.3+k0s.0'],
  ['an UpdateConfig made the Plan', { isOfChannel: true }, 'an UpdateConfig made the Plan'],
  [
    'no run has the old version',
    { downloads: [] },
    `no recorded run downloaded ${OLD} for linux-amd64`,
  ],
  [
    'an earlier run took the old version from the hosts, and this host no longer keeps it',
    { downloads: [{ version: OLD, platform: 'linux-amd64', url: keptFileUrl(OLD), sha256: SUM }] },
    `w2: the agent does not say whether the host keeps ${OLD}`,
  ],
  [
    'nodes keep different files of the old version',
    { present: { w1: NEW, w2: NEW }, downloads: [], kept: { w1: SUM, w2: OTHER_SUM } },
    `the kept binaries differ, with the sha256 ${OTHER_SUM} on w2; ${SUM} on w1`,
  ],
  [
    'nothing is recorded',
    { before: [] },
    'run id1 does not record which versions its nodes ran before',
  ],
  [
    'one node has no recorded version',
    {
      before: [
        { role: 'worker', version: OLD, nodes: ['w1'] },
        { role: 'worker', nodes: ['w2'] },
      ],
    },
    'w2: no record names the version that it ran before',
  ],
  [
    'the way back is closed',
    { servers: 'v1.40.0+k0s.0' },
    'a kubelet of v1.36 is too old for the API server of v1.40.0+k0s.0',
  ],
])('nothing is written if %s', (name, row, obstacle) => {
  const present = name.startsWith('no node') ? {} : { w2: NEW };
  expect(backOf({ present, ...row })).toEqual({ obstacle: expect.stringContaining(obstacle) });
});

test('the leader waits for a node that does not show its new version yet, and then begins', () => {
  const row = { reported: 'w1', later: MINUTE };
  expect(backOf({ ...row, present: { w2: NEW } })).toEqual({ awaits: LAGS, leftMs: MINUTE });
  expect(backOf({ ...row, present: { w1: NEW, w2: NEW } })).toMatchObject({ names: ['w2', 'w1'] });
});

test('the leader refuses if the node never shows it, and waits for nothing that time cannot show', () => {
  const row = { reported: 'w1', present: { w2: NEW } };
  expect(backOf({ ...row, later: 2 * MINUTE })).toEqual({ obstacle: LAGS });
  const before: NodeRolloutRun['before'] = [
    { role: 'worker', version: OLD, nodes: ['w1'] },
    { role: 'worker', nodes: ['w2'] },
  ];
  expect(backOf({ ...row, before })).toEqual({
    obstacle: `${LAGS}; w2: no record names the version that it ran before`,
  });
});

test('an end in the future, which the clock of another leader gave, does not make the leader wait longer', () => {
  const row = { reported: 'w1', present: { w2: NEW }, later: -60 * MINUTE };
  expect(backOf(row)).toEqual({ awaits: LAGS, leftMs: 2 * MINUTE });
});

test('the leader waits for agents that have not announced yet which file they keep, but only for two minutes', () => {
  const row = {
    present: { w1: NEW, w2: NEW },
    downloads: [],
    kept: { w1: 'a'.repeat(64), w2: 'a'.repeat(64) },
    keptVersion: 'v1.36.3+k0s.4',
  };
  const sentences = ['w2', 'w1'].map(
    (name) =>
      `the agent of ${name} last announced that its host keeps v1.36.3+k0s.4 instead of ${OLD}`,
  );
  expect(backOf({ ...row, later: MINUTE })).toEqual({
    awaits: sentences.join('; '),
    leftMs: MINUTE,
  });
  expect(backOf({ ...row, later: 2 * MINUTE })).toMatchObject({
    obstacle: expect.stringContaining('last announced that its host keeps v1.36.3+k0s.4') as string,
  });
});

test('the leader waits for no announcement if a download is known', () => {
  const row = {
    present: { w1: NEW },
    kept: { w1: 'a'.repeat(64) },
    keptVersion: 'v1.36.3+k0s.4',
  };
  expect(backOf(row)).toMatchObject({ names: ['w1'] });
});

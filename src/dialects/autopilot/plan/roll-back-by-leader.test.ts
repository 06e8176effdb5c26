/** Which spec takes a failed run of k0s back, and what keeps the leader from writing it. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { recorded, statusOf } from '../../../../test/support/builders/views.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { T0 } from '../../../../test/support/clock/times.ts';
import { ORIGIN_ANNOTATION } from '../../../api/autopilot/plan.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import { annotated } from '../../../kube/resources.ts';
import type { ControlNode } from '../../../signal/names.ts';
import { resolve } from './resolve-autopilot-plan.ts';
import { planBackOf } from './roll-back-by-leader.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const NAMES = ['w1', 'w2', 'w3'];
const COUNTS = { total: 3, done: 1, failed: 1, inProgress: 0, pending: 1, skipped: 0 };

interface Row {
  /** The version that each node runs now. */
  readonly present?: Readonly<Record<string, string>>;
  readonly servers?: string;
  readonly before?: NodeRolloutRun['before'];
  readonly downloads?: NodeRolloutRun['downloads'];
  readonly isOfChannel?: boolean;
}

function backOf({ present = {}, servers = NEW, before, downloads, isOfChannel }: Row) {
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
    const node = buildNode(name);
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
    phase: 'failed',
    counts: COUNTS,
    before: before ?? [{ role: 'worker', version: OLD, nodes: NAMES }],
    downloads: [{ version: NEW, platform: 'linux-amd64', url: 'https://example.com/new' }],
  };
  const old = { version: OLD, platform: 'linux-amd64', url: 'https://example.com/old' };
  const earlier: NodeRolloutRun = { ...run, id: 'id0', downloads: downloads ?? [old] };
  const rollout = resolve(plan, world, T0);
  return planBackOf({ plan, rollout, world, run, history: [run, earlier] }, T0);
}

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
  ['nothing is recorded', { before: [] }, 'run id1 does not record what its nodes ran before'],
  [
    'one node has no recorded version',
    {
      before: [
        { role: 'worker', version: OLD, nodes: ['w1'] },
        { role: 'worker', nodes: ['w2'] },
      ],
    },
    'w2: what it ran before is not recorded',
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

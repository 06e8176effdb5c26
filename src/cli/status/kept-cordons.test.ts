/** Shows that preview, status and why report a node that stays cordoned because somebody else cordoned it, in every dialect. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import {
  buildViewParts,
  recorded,
  signalled,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { statusShards } from '../../api/refit/status-shard.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { capi } from '../../dialects/capi/plan/capi-dialect.ts';
import { withRequest } from '../../dialects/capi/plan/machine-update.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import { kubeadmView } from '../../dialects/kubeadm/plan/kubeadm-dialect.ts';
import { newPlan } from '../../dialects/kubeadm/plan/plan-object.ts';
import { withCordon } from '../../drain/cordon-marks.ts';
import { jobs, type KubeObject, type Node, nodes } from '../../kube/resources.ts';
import { encodeAgentPolicy, encodeReport } from '../../signal/annotations.ts';
import { controlNodes, ROLLOUT_ANNOTATION } from '../../signal/names.ts';
import { mediumOf } from '../output.ts';
import { previewOpen } from '../preview/preview-command.ts';
import { renderPreview } from '../preview/view.ts';
import { whyLines } from '../why/why-command.ts';
import type { ShownStatus } from './json-form.ts';
import { observe } from './observe.ts';
import { render } from './render.ts';

const NOW = T0 + MINUTE;
const LOOK = { hasColours: false, size: () => ({ columns: 200, rows: 24 }) };
const MEDIUM = mediumOf(LOOK);
const BEFORE =
  'w1 stays cordoned after its attempt: it was cordoned before the attempt, and not by Refit';
const SINCE = 'w1 is cordoned, and not by Refit: somebody cordoned it before its attempt or since';

const DIALECTS = { autopilot, cattle: cattleView, kubeadm: kubeadmView, capi };

const cordoned = (node: Node): Node => ({ ...node, spec: { ...node.spec, unschedulable: true } });

async function told(name: keyof typeof DIALECTS, plan: KubeObject, ...workers: readonly Node[]) {
  const world = buildWorldOf([nodes, workers], [jobs, []], [controlNodes, []], [statusShards, []]);
  const loaded = { dialect: DIALECTS[name], plans: () => [plan], world };
  const parts = buildViewParts();
  const leader = { state: 'held', holder: 'abc', since: later(0) } as const;
  const view: ShownStatus = { leader, plans: await observe(loaded, parts, NOW) };
  return {
    view,
    status: render(view, 'text', NOW, LOOK),
    ofNode: whyLines(view, 'w1', NOW, MEDIUM).join('\n'),
    ofPlan: whyLines(view, undefined, NOW, MEDIUM).join('\n'),
    preview: renderPreview({ leader, plans: await previewOpen([loaded], parts, NOW) }, NOW),
  };
}

const update = buildUpdate({ targets: { workers: listed('w1', 'w2') } });
const k0s = (...status: Parameters<typeof statusOf>) =>
  buildPlan({ commands: [{ k0supdate: update }] }, statusOf(...status));
const RUNS = k0s('SchedulableWait', [], recorded({ w1: 'SignalSent', w2: 'SignalPending' }));
const ENDED = k0s('Completed', [], recorded({ w1: 'SignalCompleted', w2: 'SignalCompleted' }));

/** Returns a node that a leader of Refit signalled. The leader found the node cordoned before. */
const found = (status: string): Node =>
  cordoned(
    signalled(
      buildNode('w1'),
      { status, timestamp: later(30_000) },
      {
        ...encodeAgentPolicy({ foundCordoned: true }),
        ...encodeReport({ created: later(1000) }),
        [ROLLOUT_ANNOTATION]: `plan-uid/${later(1000)}`,
      },
    ),
  );

test.each([
  ['before it starts', cordoned(buildNode('w2')), found('Restart'), 'w2'],
  ['while it runs', buildNode('w2'), found('Restart'), 'w1'],
])(
  'a cordon from before the plan is told in a Plan of k0s %s',
  async (_name, other, first, name) => {
    const seen = await told('autopilot', RUNS, first, other);
    const sentence = BEFORE.replace('w1', name);
    for (const text of [seen.status, seen.preview, seen.ofPlan])
      expect(text).toContain(sentence.slice(3));
    expect(seen.view.plans[0]?.cordoned).toContainEqual({ target: name, message: sentence });
    expect(seen.ofNode).toContain(`cordon  ${BEFORE}`);
  },
);

test('a cordon from before the plan is told in a Plan of k0s after its end', async () => {
  const seen = await told('autopilot', ENDED, found('Completed'), buildNode('w2'));
  expect(seen.status).toContain(`cordon  ${BEFORE}`);
  expect(seen.ofNode).toContain(`cordon  ${BEFORE}`);
  expect(seen.ofPlan).toContain(`cordon  ${BEFORE}`);
});

test('after the end of a Plan of k0s a cordon may be from before or since if the signal of the node does not say so', async () => {
  const done = cordoned(
    signalled(buildNode('w1'), { status: 'Completed', timestamp: later(2000) }),
  );
  const { status } = await told('autopilot', ENDED, done, buildNode('w2'));
  expect(status).toContain(`cordon  ${SINCE}`);
});

test('several nodes with a cordon from before the plan share a line', async () => {
  const { status } = await told('autopilot', RUNS, found('Restart'), cordoned(buildNode('w2')));
  expect(status).toContain(`cordon  ${BEFORE}; the same holds for w2\n`);
});

test.each([
  ['our own cordon', withCordon(buildNode('w1'), 'u/t')],
  ['a node that is not cordoned', buildNode('w1')],
  [
    "a node of k0s's own agent, which makes it schedulable",
    cordoned(signalled(buildNode('w1'), { status: 'Cordoning', timestamp: later(2000) })),
  ],
])('nothing is said of %s', async (_name, node) => {
  expect((await told('autopilot', RUNS, node, buildNode('w2'))).view.plans[0]).not.toHaveProperty(
    'cordoned',
  );
});

test('a cordon from before the plan is told in a Plan of Rancher, whether it cordons or not', async () => {
  for (const cordon of [true, false]) {
    const host = buildNode('w1', { labels: { 'kubernetes.io/hostname': 'w1' } });
    const seen = await told('cattle', buildCattlePlan('p', { cordon }), cordoned(host));
    for (const text of [seen.status, seen.preview, seen.ofPlan, seen.ofNode])
      expect(text).toMatch(new RegExp(`cordon +${BEFORE}`));
  }
});

test('a cordon from before the plan is told in a kubeadm upgrade', async () => {
  const request = {
    version: 'v1.36.3',
    concurrent: 1,
    leader: [],
    followers: [],
    certificates: [],
    kubelets: [],
    workers: ['w1'],
  };
  const metadata = {
    name: 'refit-kubeadm',
    namespace: 'kube-system',
    uid: 'u',
    creationTimestamp: later(0),
  };
  const plan = { ...newPlan(request, 'sha256:1'), metadata };
  const seen = await told('kubeadm', plan, cordoned(buildNode('w1')));
  for (const text of [seen.status, seen.preview, seen.ofPlan, seen.ofNode])
    expect(text).toMatch(new RegExp(`cordon +${BEFORE}`));
});

test('a cordon from before the plan is told of a Machine of Cluster API', async () => {
  const node = withRequest(cordoned(buildNode('w1')), {
    uid: 'machine',
    machine: 'fleet/m',
    version: 'v1.36.3',
    role: 'worker',
    requested: later(0),
    platform: 'linux-amd64',
    url: 'https://example.com/k0s',
  });
  const seen = await told('capi', node, node);
  for (const text of [seen.status, seen.preview, seen.ofNode])
    expect(text).toMatch(new RegExp(`cordon +${BEFORE}`));
});

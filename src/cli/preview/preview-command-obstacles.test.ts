/** Tests what a preview prints about everything that refuses, holds or will delay a plan. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed, selected } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  names,
  plan,
  preview,
  previewIn,
  targets,
  textOf,
  workers,
} from '../../../test/support/builders/previews.ts';
import {
  buildViewParts,
  READY,
  recorded,
  signalled,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { UpgradePolicy, UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import { PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import { because } from '../../engine/model/reasons.ts';
import {
  annotated,
  type Job,
  jobs,
  type KubeObject,
  type Node,
  nodes,
} from '../../kube/resources.ts';
import { AGENT_ANNOTATION, ATTEMPT_LABEL, controlNodes } from '../../signal/names.ts';
import type { AskControlPlane, Sources } from '../status/inspection-sources.ts';
import { previewNew } from './preview-command.ts';
import { type PreviewView, problemsOf, renderPreview } from './view.ts';

test('a selector that matches nothing is told beside the stages that have targets', async () => {
  const some = { controllers: listed('c1', 'c2'), workers: selected('pool=nobody') };
  const view = await preview(
    'autopilot',
    buildPlan({ commands: [{ k0supdate: buildUpdate({ targets: some }) }] }),
    [],
  );
  expect(view.stages.map(({ selection }) => selection)).toEqual([
    undefined,
    'labels "pool=nobody"',
  ]);
  expect(textOf(view)).toContain(
    '\n  workers to v1.36.3+k0s.2: nothing matches labels "pool=nobody"\n',
  );
});

test('a worker that would be too old for the new controllers is named before the start, with the rule', async () => {
  const [node = buildNode('w1')] = workers;
  const old = { ...node, status: { ...node.status, nodeInfo: { kubeletVersion: 'v1.34.6+k0s' } } };
  const servers = ['c1', 'c2'].map((name) => {
    const controller = buildControlNode(name);
    return { ...controller, status: { ...controller.status, k0sVersion: 'v1.35.4+k0s.0' } };
  });
  const file = buildPlan({
    commands: [{ k0supdate: buildUpdate({ targets: { controllers: listed('c1', 'c2') } }) }],
  });
  const world = buildWorldOf([nodes, [old]], [controlNodes, servers], [jobs, []]);
  const parts = buildViewParts({ controlPlane: READY });
  const view = await previewNew(file, { dialect: autopilot, plans: () => [], world }, parts, T0);
  expect(problemsOf(view).join('\n')).toContain(
    'w1 would still have a kubelet of v1.34.6+k0s when the API server of c1, c2 has v1.36.3+k0s.2',
  );
  expect(textOf(view)).toContain('rule KubeletBehind; versions.allow: [KubeletBehind]');
});

test('nodes of a platform for which a new Plan has no download share one line, and each field keeps its line', async () => {
  const arm = { labels: { 'kubernetes.io/arch': 'arm64', 'kubernetes.io/os': 'linux' } };
  const targets = { workers: listed('w1', 'w2', 'w3') };
  const file = buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] });
  const all = [buildNode('w1', arm), buildNode('w2', arm), buildNode('w3')];
  const world = buildWorldOf([nodes, all], [controlNodes, []], [jobs, []]);
  const served = { dialect: autopilot, plans: () => [], world };
  const view = await previewNew(file, served, buildViewParts({ controlPlane: READY }), T0);
  expect(problemsOf(view)).toEqual([
    expect.stringMatching(
      /^w1 is linux-arm64; the plan has downloads for linux-amd64: .*; the same holds for w2$/,
    ),
  ]);
  const fields = ['spec.id: is missing', 'spec.commands: is missing'];
  expect(problemsOf({ ...view, problems: fields })).toEqual(fields);
});

test('the gates are asked on the cluster as it is', async () => {
  const down: AskControlPlane = async (endpoints) =>
    await Promise.resolve(
      endpoints.map(({ name }) => ({
        name,
        ready: name !== 'c2',
        isSilent: true,
        detail: 'GET https://127.0.0.2:6443/readyz: connect ECONNREFUSED 127.0.0.2:6443',
      })),
    );
  const view = await preview('autopilot', plan, workers, down);
  // The leader connects from another place in the network, so the result of this machine does not block the plan.
  expect(view.waits.map(({ gate }) => gate)).toEqual(['stages']);
  expect(textOf(view)).toContain(
    "\n  unknown  this machine gets no answer from the API server of c2; only the leader's check counts\n",
  );
});

test('nodes that work for the plan that is there already: named, and in the way', async () => {
  const status = statusOf('SchedulableWait', [], recorded({ w1: 'SignalSent' }));
  const present = { ...plan, status };
  const labels = { [ATTEMPT_LABEL]: `old-uid.${later(-1000).replaceAll(':', '')}` };
  const busy = signalled(buildNode('w1', { labels }), {
    planId: 'old',
    created: later(-1000),
    status: 'Restart',
    timestamp: later(-500),
  });
  const file = buildPlan(
    { id: 'id2', commands: [{ k0supdate: buildUpdate({ targets: { workers: listed('w2') } }) }] },
    status,
  );
  const view = await preview('autopilot', file, [busy, ...workers.slice(1)], READY, [present]);
  expect(view).toMatchObject({
    phase: 'new',
    present: 'running',
    waits: [{ target: 'w2', gate: 'foreign-work' }],
  });
  expect(textOf(view)).toContain('present  the cluster has a plan with this name: running\n');
});

test.each<[string, KubeObject, RegExp]>([
  ['a node that is not there', plan, /w3 does not exist as a worker/],
  [
    'no target at all',
    buildPlan({
      commands: [{ k0supdate: buildUpdate({ targets: { workers: selected('pool=nobody') } }) }],
    }),
    /no target/,
  ],
  [
    'another name',
    { ...plan, metadata: { name: 'x' } },
    /metadata\.name: "x" is not supported; use "autopilot"/,
  ],
])('not carried out as it stands: %s', async (_name, file, reason) => {
  const view = await preview('autopilot', file, workers.slice(0, 2));
  expect(view.reason).toMatch(reason);
  expect(view.stages.flatMap(({ batches }) => batches)).toEqual([]);
  expect(view.duration).toBeUndefined();
  expect(textOf(view)).toMatch(/^ {2}problem {2}/m);
  expect(textOf(view)).not.toMatch(/batch 1|takes/);
});

test.each<[string, PreviewView['leader'], string]>([
  [
    'nobody leads',
    { state: 'none' },
    'No leader: no refit controller holds lease k0s-autopilot/k0s-autopilot-controller. No new node starts until one runs.\n',
  ],
  [
    'the leader is gone',
    { state: 'silent', holder: 'a', since: later(-120_000) },
    'No renewal by leader a for 2 min: no new node starts until a refit controller runs.\n',
  ],
])('a Plan that would not start, since %s', async (_name, leader, said) => {
  const view = await preview('autopilot', plan, workers);
  expect(renderPreview({ leader, plans: [view] }, T0)).toBe(`${said}${textOf(view)}`);
  const cattle = await preview('cattle', buildCattlePlan('p', {}), workers);
  expect(renderPreview({ leader, plans: [cattle] }, T0)).toBe(textOf(cattle));
});

const BARE = {
  pod: 'shop/bare',
  reason: 'has no controller, so nothing would create it again',
} as const;
const BUDGET = { budget: 'shop/web', pods: ['shop/web-1'], reason: 'it wants all of them' };

const HELD: Job = {
  metadata: { name: 'j', annotations: { 'refit.upgrade.cattle.io/drained-by-leader': 'true' } },
};

test.each<[string, readonly Job[], readonly string[]]>([
  ['by its Job, as it is by default: no wait is told', [], ['slots']],
  ["by the controller, as another Plan's Job shows", [HELD], ['drain-possible', 'drain-possible']],
])(
  'a Plan of the system-upgrade-controller whose nodes are drained %s',
  async (_how, made, gates) => {
    const hosts = names(2).map((name) =>
      buildNode(name, { labels: { 'kubernetes.io/hostname': name } }),
    );
    const sources = {
      drainPreview: async () =>
        await Promise.resolve({ evictable: 1, obstacles: [BUDGET], refused: [BARE] }),
    };
    const seen = {
      dialect: cattleView,
      plans: () => [],
      world: buildWorldOf([nodes, hosts], [jobs, made]),
    };
    const view = await previewNew(
      buildCattlePlan('p', { drain: {} }),
      seen,
      buildViewParts(sources),
      T0,
    );
    expect(view.waits.map(({ gate }) => gate)).toEqual(gates);
    const isByLeader = made.length > 0;
    const blocked = view.drains?.blocked.map(({ target }) => target).toSorted();
    expect(blocked).toEqual(isByLeader ? names(2) : []);
    const fails = `drain fails: shop/bare ${BARE.reason}; spec.drain.force: true of the Plan allows this`;
    const ofNode = isByLeader
      ? [expect.stringContaining('Refit cordons the node')]
      : [expect.stringContaining('The Job cordons the node'), expect.stringContaining(fails)];
    expect(view.drains?.warnings).toEqual([...ofNode, ...ofNode]);
    expect(textOf(view).includes('spec.drain.force: true of the Plan allows this')).toBe(true);
    expect(textOf(view)).not.toContain('UpgradePolicy allows this');
    const cordons = await previewNew(
      buildCattlePlan('p', { cordon: true }),
      seen,
      buildViewParts(sources),
      T0,
    );
    expect(cordons.drains).toBeUndefined();
  },
);

test.each<[string, readonly UpgradePolicy[], object | undefined]>([
  ['none', [], undefined],
  ['one for all', [buildUpgradePolicy('all')], { name: 'all', rule: 'covers every plan' }],
  [
    'one that names it, before one for all',
    [
      buildUpgradePolicy('all'),
      buildUpgradePolicy('tonight', { plans: [{ dialect: 'autopilot', name: 'autopilot' }] }),
    ],
    {
      name: 'tonight',
      rule: 'covers plans with dialect autopilot, name autopilot, instead of all',
    },
  ],
])('the policy that holds the plan: %s', async (_name, policies, told) => {
  const view = await previewIn({ policies });
  expect(view.policy).toEqual(told);
  const line = told && `  policy   UpgradePolicy ${Object.values(told).join(' ')}`;
  expect(
    textOf(view)
      .split('\n')
      .find((each) => each.includes('policy ')),
  ).toBe(line);
});

test('what stands against the plan at the API server, and what its policy forbids: told as it will be refused', async () => {
  const removed = because('RemovedApis', 'flowschemas are left');
  expect(
    (await previewIn({ sources: { preconditions: async () => await Promise.resolve([removed]) } }))
      .reason,
  ).toBe('flowschemas are left');
  const policies = [buildUpgradePolicy('all', { payloads: { requireHttps: true } })];
  const update = buildUpdate({
    platforms: { 'linux-amd64': { url: 'http://example.com/k0s' } },
    targets,
  });
  const file = buildPlan({ commands: [{ k0supdate: update }] });
  expect((await previewIn({ policies, file })).reason).toMatch(
    /comes over plain http, and UpgradePolicy all requires https; to allow this, set spec.payloads.requireHttps: false in the policy$/,
  );
});

test('all that refuses a plan is told, also what would be found only once the rest is corrected', async () => {
  const removed = because('RemovedApis', 'flowschemas are left');
  const update = buildUpdate({
    platforms: { 'linux-amd64': { url: 'http://example.com/k0s' } },
    targets: { controllers: listed('c1', 'nobody') },
  });
  const view = await previewIn({
    policies: [
      buildUpgradePolicy('all', { payloads: { requireHttps: true, requireSha256: true } }),
    ],
    file: buildPlan({ commands: [{ k0supdate: update }] }),
    sources: { preconditions: async () => await Promise.resolve([removed]) },
  });
  const problems = textOf(view)
    .split('\n')
    .filter((line) => line.startsWith('  problem '));
  expect(problems).toEqual([
    '  problem  flowschemas are left',
    expect.stringContaining('has no sha256, and UpgradePolicy all requires one'),
    expect.stringContaining('comes over plain http, and UpgradePolicy all requires https'),
    '  problem  nobody does not exist as a controller',
  ]);
});

test('a line about what waits ends with what ends it', async () => {
  const policies = [buildUpgradePolicy('all', { paused: true })];
  expect(textOf(await previewIn({ policies }))).toMatch(
    /^ {2}waits {4}.* \(Paused\); ends when UpgradePolicy all is no longer paused/m,
  );
});

test('every drain of the plan: how many pods, which budgets hold which of them, which may not be evicted', async () => {
  const drainPreview: Sources['drainPreview'] = async (node) =>
    await Promise.resolve({
      evictable: 3,
      obstacles: node === 'w2' ? [BUDGET] : [],
      refused:
        node === 'w3'
          ? [{ pod: 'shop/db', reason: 'has data in an emptyDir volume, which would be lost' }]
          : [],
    });
  const waiting = [buildUpgradePolicy('all', { drain: { zeroDisruptionBudgets: 'Wait' } })];
  const view = await previewIn({ sources: { drainPreview }, policies: waiting });
  expect(view.drains).toMatchObject({
    nodes: 3,
    evictable: 9,
    blocked: [{ target: 'w2' }, { target: 'w3' }],
  });
  expect(textOf(view)).toContain(`
  drains   9 pods would be evicted from 3 nodes
  blocked  w2 cannot be drained: PodDisruptionBudget shop/web blocks shop/web-1: it wants all of them
  blocked  w3 cannot be drained: shop/db has data in an emptyDir volume, which would be lost; spec.drain.deleteEmptyDirData: true of an UpgradePolicy allows this
`);
  const policies = [buildUpgradePolicy('all', { drain: { enabled: false } })];
  expect((await previewIn({ sources: { drainPreview }, policies })).drains).toBeUndefined();
});

test.each<[string, NonNullable<UpgradePolicySpec['drain']>, string]>([
  [
    'Stop, the default',
    {},
    'for at most 1 h (`deadlines.drain`), because an operator may change the budget. After that, Refit uncordons the node, and the plan stops',
  ],
  [
    'Skip',
    { onDeadline: 'Skip' },
    'for at most 1 h (`deadlines.drain`), because an operator may change the budget. After that, Refit uncordons the node, and the node has failed',
  ],
  [
    'SkipNode',
    { onDeadline: 'SkipNode' },
    'for at most 1 h (`deadlines.drain`), because an operator may change the budget. After that, Refit uncordons the node, and leaves it out',
  ],
  [
    'Wait',
    { onDeadline: 'Wait' },
    'until the budget allows them. This drain has no deadline, so the node stays cordoned until then, or until `refit abort`',
  ],
])(
  'preview warns about a budget that allows no disruption, and says what happens at the deadline: %s',
  async (_rule, drain, limit) => {
    const drainPreview: Sources['drainPreview'] = async (node) =>
      await Promise.resolve({
        evictable: 1,
        obstacles: node === 'w2' ? [BUDGET] : [],
        refused: [],
      });
    const policies = [buildUpgradePolicy('all', { drain })];
    const view = await previewIn({ sources: { drainPreview }, policies });
    const warning = `the drain of w2 may not end: PodDisruptionBudget shop/web blocks shop/web-1: it wants all of them. Refit cordons the node, and asks for the evictions ${limit}`;
    expect(view.drains).toMatchObject({ blocked: [], warnings: [warning] });
    expect(textOf(view).split(warning)).toHaveLength(2);
  },
);

test('preview and status warn about a tool of the policy that was not found', async () => {
  const notFound = 'no DaemonSet of the cluster runs Kured';
  const lock = { tool: 'Kured', others: [], isOurs: true, notFound } as const;
  const locks: Sources['locks'] = async () => await Promise.resolve({ known: [lock], unseen: [] });
  const policies = [buildUpgradePolicy('all', { coordinate: ['Kured'] })];
  const view = await previewIn({ sources: { locks }, policies });
  expect(textOf(view)).toContain(`  warning  ${notFound}\n`);
});

test('a preview without the right to list pods says so, and calls no drain possible', async () => {
  const drainPreview: Sources['drainPreview'] = async () =>
    await Promise.reject(new Error('pods is forbidden'));
  const view = await previewIn({ sources: { drainPreview } });
  expect(view.drains).toEqual({ nodes: 0, evictable: 0, blocked: [], unseen: 'pods is forbidden' });
  expect(textOf(view)).toContain('  unknown  whether nodes can be drained: pods is forbidden\n');
});

const ENDED = {
  ...plan,
  status: { state: 'Completed', commands: [{ id: 0, state: 'Completed' }] },
};

test('a file over a Plan of k0s that has ended shows the order as if the Plan was replaced, and what must be deleted', async () => {
  const view = await preview('autopilot', plan, workers, READY, [ENDED]);
  const alone = await preview('autopilot', plan, workers);
  expect(view.stages).toEqual(alone.stages);
  expect(view.stages.flatMap(({ batches }) => batches).length).toBeGreaterThan(0);
  expect(problemsOf(view)).toEqual([]);
  expect(alone.first).toBeUndefined();
  expect(textOf(view)).toContain(
    '  first    Plan autopilot is in the cluster and has ended (done), so kubectl apply alone starts nothing: delete it first, or run kubectl replace --force -f with this file\n',
  );
});

test('a file over a Plan of k0s that has ended hides no other problem', async () => {
  const [first, ...others] = workers;
  const newer = {
    ...(first ?? buildNode('w1')),
    status: { nodeInfo: { kubeletVersion: 'v1.38.0' } },
  };
  const view = await preview('autopilot', plan, [newer, ...others], READY, [ENDED]);
  expect(problemsOf(view)).not.toEqual([]);
  expect(problemsOf(view)).toEqual(
    problemsOf(await preview('autopilot', plan, [newer, ...others], READY)),
  );
});

test('a virtual Node among the targets is named, and the plan is not refused for its version', async () => {
  const [first, ...others] = workers;
  const odd: Node = {
    ...(first ?? buildNode('w1')),
    status: { nodeInfo: { kubeletVersion: 'v1.19.10-vk-azure' } },
  };
  const text = textOf(await preview('autopilot', plan, [odd, ...others]));
  expect(text).toContain(
    'c1, c2, w2, w3: its version is unknown; w1: a virtual Node, because it has the kubelet version v1.19.10-vk-azure',
  );
  expect(text).not.toContain('problem');
});

test('hosts on cgroup v1 hold the whole plan before its first drain, and are named with what mends it', async () => {
  const said = JSON.stringify({ version: '1.2.3', since: later(0), cgroupV1: 'refused' });
  const old = workers.slice(1).map((node) => annotated(node, { [AGENT_ANNOTATION]: said }));
  const text = textOf(await preview('autopilot', plan, [...workers.slice(0, 1), ...old]));
  expect(text).toContain(
    'w2, w3: the host has cgroup v1, which the kubelet of v1.36.3+k0s.2 refuses: boot it with cgroup v2, or set failCgroupV1: false in its worker profile and restart k0s; or start the agent with --allow-cgroup-v1, which skips this check (HostUnfit)',
  );
});

test('a plan that is paused says so beside what holds it first', async () => {
  const paused = {
    ...plan,
    metadata: { ...plan.metadata, annotations: { [PAUSE_ANNOTATION]: 'true' } },
  };
  const view = await preview('autopilot', paused, workers);
  const first = { code: 'DownloadImpossible', message: 'w1 cannot download it' } as const;
  const wait = {
    gate: 'downloads-possible',
    reason: first,
    since: later(0),
    ofStage: true,
  } as const;
  const text = textOf({ ...view, waits: [wait] });
  expect(text).toContain('Plan autopilot (id1)  new, paused\n');
  expect(text).toContain(
    '  paused   the plan is paused, too: nothing new starts until it is resumed\n',
  );
  // If the pause is the first thing that blocks the plan, the line about the wait already names the pause.
  expect(textOf(view)).not.toContain('is paused, too');
});

test('a selector that no node matches: the same is said of a Plan of k0s and one of Rancher', async () => {
  const none = { workers: selected('pool=nobody') };
  const ours = buildPlan({ commands: [{ k0supdate: buildUpdate({ targets: none }) }] });
  const theirs = buildCattlePlan('p', { nodeSelector: { matchLabels: { pool: 'nobody' } } });
  const nothing =
    '\n  problem  the plan lists or selects no target, so it does nothing: check its selectors and limits\n';
  expect(textOf(await preview('autopilot', ours, workers))).toContain(nothing);
  expect(textOf(await preview('cattle', theirs, workers))).toContain(nothing);
});

/** Shows the waves and gates of a plan that is only a file yet, and of plans in the cluster, for several dialects. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed, selected } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  READY,
  recorded,
  signalled,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { UpgradePolicy, UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import { DIALECTS } from '../../dialects/registry.ts';
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
import { encodeReport } from '../../signal/annotations.ts';
import { AGENT_ANNOTATION, ATTEMPT_LABEL, controlNodes } from '../../signal/names.ts';
import type { AskControlPlane, Sources } from '../status/inspection-sources.ts';
import { previewNew, previewOpen } from './preview-command.ts';
import { type PlanPreview, type PreviewView, renderPreview } from './view.ts';

const names = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `w${index + 1}`);
const targets = {
  controllers: listed('c1', 'c2'),
  workers: { ...listed(...names(3)), limits: { concurrent: 2 } },
};
const plan = buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] });
const controllers = [buildControlNode('c1'), buildControlNode('c2')];
const workers = names(3).map((name) => buildNode(name));

const HERE = buildViewParts();

/** Of a cluster in which somebody leads. */
function textOf(...plans: readonly PlanPreview[]): string {
  return renderPreview({ leader: { state: 'held', holder: 'a', since: later(0) }, plans }, T0);
}

async function preview(
  name: string,
  file: KubeObject,
  workers: readonly Node[],
  ask: AskControlPlane = READY,
  present: readonly KubeObject[] = [],
): Promise<PlanPreview> {
  const dialect = DIALECTS.find((each) => each.name === name);
  if (!dialect) throw new Error(`no dialect ${name}`);
  const world = buildWorldOf([nodes, workers], [controlNodes, controllers], [jobs, []]);
  return await previewNew(
    file,
    { dialect, plans: () => present, world },
    buildViewParts({ controlPlane: ask }),
    T0,
  );
}

test('a Plan of k0s: stages in order, waves by slots, and what waits', async () => {
  const view = await preview('autopilot', plan, workers);
  expect(view).toMatchObject({ phase: 'new', stages: [{ maxInFlight: 1 }, { maxInFlight: 2 }] });
  expect(textOf(view)).toBe(`Plan autopilot (id1)  new
  controllers of command 0 to v1.36.3+k0s.2, 1 at a time
    wave 1   c1
    wave 2   c2
  workers of command 0 to v1.36.3+k0s.2, 2 at a time
    wave 1   w1, w2
    wave 2   w3
  waits    1 controller queued (1 at a time) (NoFreeSlot)
  waits    3 workers wait until the controllers are done (EarlierStage)
  takes    about 1 min 20 s of work: 20 s a wave, assumed for a node with nothing to drain; downloads come on top
  unknown  whether the version rules allow it: c1, c2, w1, w2, w3: its version is unknown
`);
});

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
    '\n  workers of command 0 to v1.36.3+k0s.2: nothing matches labels "pool=nobody"\n',
  );
});

test('the gates are asked on the cluster as it is', async () => {
  const down: AskControlPlane = async (endpoints) =>
    await Promise.resolve(
      endpoints.map(({ name }) => ({
        name,
        ready: name !== 'c2',
        detail: 'no answer: connect ECONNREFUSED 127.0.0.2:6443',
      })),
    );
  const view = await preview('autopilot', plan, workers, down);
  // The leader asks from another place: what this machine sees is no gate.
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
  expect(textOf(view)).toContain('present  the cluster has a plan of that name: running\n');
});

test.each<[string, KubeObject, RegExp]>([
  ['a node that is not there', plan, /worker w3/],
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
  expect(view.stages.flatMap(({ waves }) => waves)).toEqual([]);
  expect(view.duration).toBeUndefined();
  expect(textOf(view)).toMatch(/^ {2}problem {2}/m);
  expect(textOf(view)).not.toMatch(/wave 1|takes/);
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

test('a Plan of the system-upgrade-controller', async () => {
  const hosts = names(3).map((name) =>
    buildNode(name, { labels: { 'kubernetes.io/hostname': name } }),
  );
  const view = await preview('cattle', buildCattlePlan('p', { concurrency: 2 }), hosts);
  expect(view.stages[0]?.waves.map(({ length }) => length)).toEqual([2, 1]);
  expect(view.stages[0]?.waves.flat().toSorted()).toEqual(names(3));
  expect(view.duration).toBeUndefined();
  expect(renderPreview({ leader: { state: 'none' }, plans: [view] }, T0)).toContain(
    'unknown  the order of its nodes, until the Plan exists: it hashes the uid',
  );
  const present = buildCattlePlan('p');
  const edited = await preview('cattle', buildCattlePlan('p'), hosts, READY, [present]);
  const order = cattleView.resolve(present, buildWorldOf([nodes, hosts], [jobs, []]), T0).stages[0]
    ?.targets;
  expect(edited.stages[0]?.waves.flat()).toEqual(order?.map(({ name }) => name));
  expect(edited.unseen).toBeUndefined();
  const channel = await preview(
    'cattle',
    buildCattlePlan('p', { version: '', channel: 'https://example.com' }),
    hosts,
  );
  expect(channel.reason).toBe('waiting for the version of the channel');
});

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
        await Promise.resolve({ evictable: 1, obstacles: [BUDGET], refused: [] }),
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
    expect(view.drains?.blocked.map(({ target }) => target).toSorted()).toEqual(names(2));
    const cordons = await previewNew(
      buildCattlePlan('p', { cordon: true }),
      seen,
      buildViewParts(sources),
      T0,
    );
    expect(cordons.drains).toBeUndefined();
  },
);

test('the order of a policy: each node of the control plane in a wave of its own, then zone after zone', async () => {
  const labelled: readonly [string, string, string][] = [
    ['w1', 'zone', 'b'],
    ['w2', 'zone', 'a'],
    ['c1', 'node-role.kubernetes.io/control-plane', ''],
    ['c2', 'node-role.kubernetes.io/control-plane', ''],
    ['w3', 'zone', 'b'],
  ];
  const hosts = labelled.map(([name, key, value]) =>
    buildNode(name, { labels: { 'kubernetes.io/hostname': name, [key]: value } }),
  );
  const world = buildWorldOf([nodes, hosts], [jobs, []]);
  const parts = buildViewParts({}, [buildUpgradePolicy('in-order', { order: ['zone'] })]);
  const seen = { dialect: cattleView, plans: () => [], world };
  const { stages } = await previewNew(buildCattlePlan('p', { concurrency: 4 }), seen, parts, T0);
  expect(stages[0]?.waves.map((wave) => wave.toSorted())).toEqual([
    ['c1'],
    ['c2'],
    ['w2'],
    ['w1', 'w3'],
  ]);
});

test('a plan that runs: who is under way stands beside the waves; many waves are cut in text', async () => {
  const many = names(40);
  const states = Object.fromEntries(
    many.map((name) => [name, name === 'w1' ? 'SignalSent' : 'SignalPending']),
  );
  const commands = [{ k0supdate: buildUpdate({ targets: { workers: listed(...many) } }) }];
  const running = buildPlan({ commands }, statusOf('SchedulableWait', [], recorded(states)));
  const objects = many.map((name) =>
    name === 'w1' ? signalled(buildNode(name)) : buildNode(name),
  );
  const world = buildWorldOf([nodes, objects], [controlNodes, []], [jobs, []]);
  const [shown] = await previewOpen(
    [{ dialect: autopilot, plans: () => [running], world }],
    HERE,
    T0,
  );
  if (!shown) throw new Error('no plan');
  expect(shown.stages[1]).toMatchObject({ moving: ['w1'], done: 0 });
  expect(shown.stages[1]?.waves).toHaveLength(39);
  expect(textOf(shown)).toContain('    wave 12  w13\n    and 27 more waves\n');
  const stages = shown.stages.map((stage) => ({ ...stage, waves: stage.waves.slice(0, 13) }));
  expect(textOf({ ...shown, stages })).toContain('    wave 12  w13\n    and 1 more wave\n');
  expect(textOf()).toBe('There is no plan to preview: all have ended, or none exists.\n');
});

interface Surroundings {
  readonly sources?: Partial<Sources>;
  readonly policies?: readonly UpgradePolicy[];
  readonly workers?: readonly Node[];
  readonly file?: KubeObject;
}

async function previewIn({
  sources,
  policies,
  workers: hosts = workers,
  file = plan,
}: Surroundings): Promise<PlanPreview> {
  const world = buildWorldOf([nodes, hosts], [controlNodes, controllers], [jobs, []]);
  const parts = buildViewParts(sources, policies);
  return await previewNew(file, { dialect: autopilot, plans: () => [], world }, parts, T0);
}

test.each<[string, readonly UpgradePolicy[], object | undefined]>([
  ['none', [], undefined],
  ['one for all', [buildUpgradePolicy('all')], { name: 'all', rule: 'covers every plan' }],
  [
    'one that names it, before one for all',
    [
      buildUpgradePolicy('all'),
      buildUpgradePolicy('tonight', { plans: [{ dialect: 'autopilot', name: 'autopilot' }] }),
    ],
    { name: 'tonight', rule: 'covers plans with dialect autopilot, name autopilot, before all' },
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
    /comes over plain http, and UpgradePolicy all requires https; spec.payloads.requireHttps: false there lifts this$/,
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
    '  problem  controller nobody does not exist',
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
  const view = await previewIn({ sources: { drainPreview } });
  expect(view.drains).toMatchObject({
    nodes: 3,
    evictable: 9,
    blocked: [{ target: 'w2' }, { target: 'w3' }],
  });
  expect(textOf(view)).toContain(`
  drains   9 pods would be evicted from 3 nodes
  blocked  w2 cannot be drained: PodDisruptionBudget shop/web blocks shop/web-1: it wants all of them
  blocked  w3 cannot be drained: shop/db has data in an emptyDir volume, which would be lost; spec.drain.deleteEmptyDirData: true of an UpgradePolicy lifts this
`);
  const policies = [buildUpgradePolicy('all', { drain: { enabled: false } })];
  expect((await previewIn({ sources: { drainPreview }, policies })).drains).toBeUndefined();
});

test('pods that may not be seen: said so, and no drain is called possible', async () => {
  const drainPreview: Sources['drainPreview'] = async () =>
    await Promise.reject(new Error('pods is forbidden'));
  const view = await previewIn({ sources: { drainPreview } });
  expect(view.drains).toEqual({ nodes: 0, evictable: 0, blocked: [], unseen: 'pods is forbidden' });
  expect(textOf(view)).toContain('  unknown  whether nodes can be drained: pods is forbidden\n');
});

test('nodes that run the version already: told, and a wave of them takes a second', async () => {
  const updated = (name: string, kubeletVersion: string): Node => {
    const node = signalled(buildNode(name), {
      planId: 'last',
      created: later(-1000),
      status: 'Completed',
      timestamp: later(-500),
    });
    return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion } } };
  };
  const there = [updated('w1', 'v1.36.3+k0s'), updated('w2', 'v1.36.3+k0s')];
  // The last one was put back by hand since.
  const view = await previewIn({ workers: [...there, updated('w3', 'v1.36.2+k0s')] });
  expect(view.stages[1]).toMatchObject({ there: ['w1', 'w2'], waves: [['w3']] });
  expect(view.duration?.ms).toBe(2 * 20_000 + 1000 + 20_000);
  expect(textOf(view)).toContain(
    '    there    w1, w2: at v1.36.3+k0s.2 already, done within a second\n',
  );
});

test('a stage whose nodes all run the version already is no plan without targets', async () => {
  const there = (name: string): Node => ({
    ...signalled(buildNode(name), {
      planId: 'last',
      created: later(-1000),
      status: 'Completed',
      timestamp: later(-500),
    }),
    status: { nodeInfo: { kubeletVersion: 'v1.36.3+k0s' } },
  });
  const view = await previewIn({ workers: ['w1', 'w2', 'w3'].map(there) });
  const [, workers] = view.stages;
  const text = textOf({ ...view, stages: workers ? [workers] : [] });
  expect(text).toContain('    there    w1, w2, w3: at v1.36.3+k0s.2 already');
  expect(text).not.toContain('selects no target');
});

test('how long it takes: by what these nodes told the last time', async () => {
  const told = (name: string, seconds: number): Node =>
    signalled(
      buildNode(name),
      { planId: 'earlier', created: later(-1000), status: 'Completed', timestamp: later(-500) },
      encodeReport({
        created: later(-1000),
        spent: { Downloading: 1000, Restart: (seconds - 1) * 1000 },
      }),
    );
  const view = await previewIn({ workers: [told('w1', 30), told('w2', 90), buildNode('w3')] });
  expect(view.duration).toEqual({
    ms: 4 * 90_000,
    perTargetMs: 90_000,
    basis: 'measured',
    samples: 2,
  });
  expect(textOf(view)).toContain(
    'takes    about 6 min of work: 1 min 30 s a wave, nine in ten took no longer the last time, measured on 2 nodes\n',
  );
});

test.each<[string, UpgradePolicySpec, readonly string[], readonly (readonly string[])[]]>([
  ['fewer than the plan wants', { maxUnavailable: 1 }, [], [['w1'], ['w2'], ['w3']]],
  ['more than the plan wants', { maxUnavailable: 3 }, [], [['w1', 'w2'], ['w3']]],
  [
    'a cordoned node counts, and may go with another',
    { maxUnavailable: 2 },
    ['w2'],
    [['w1', 'w2'], ['w3']],
  ],
  ['a node outside of the plan counts', { maxUnavailable: 2 }, ['x1'], [['w1'], ['w2'], ['w3']]],
  [
    'nothing may start: one at a time, once it may',
    { maxUnavailable: 1 },
    ['x1'],
    [['w1'], ['w2'], ['w3']],
  ],
])(
  'waves of as many nodes as the policy lets be unavailable: %s',
  async (_name, spec, cordoned, waves) => {
    const hosts = [...names(3), 'x1'].map((name): Node => {
      const node = buildNode(name);
      return cordoned.includes(name) ? { ...node, spec: { unschedulable: true } } : node;
    });
    const view = await previewIn({ workers: hosts, policies: [buildUpgradePolicy('calm', spec)] });
    expect(view.stages[1]?.waves).toEqual(waves);
    expect(view.duration?.ms).toBe((2 + waves.length) * 20_000);
  },
);

const SLOW = { created: later(-1000), spent: { Restart: 25 * MINUTE } };
const slow = names(3).map((name) =>
  signalled(
    buildNode(name),
    { planId: 'earlier', created: later(-1000), status: 'Completed', timestamp: later(-500) },
    encodeReport(SLOW),
  ),
);
/** 2026-11-20 is a Friday. */
const FRIDAYS = { days: ['Friday' as const], start: '22:00', timeZone: 'UTC' };

test.each<[string, UpgradePolicySpec, object | undefined, string | undefined, string]>([
  [
    'four waves do not fit into one window',
    { windows: [{ ...FRIDAYS, length: '1h' }] },
    { from: '2026-11-20T22:00:00Z', nodes: 2, of: 5 },
    '2026-11-27T22:50:00Z',
    'fits     2 of 5 nodes in the next window, from 2026-11-20T22:00:00Z (measured)\n',
  ],
  [
    'a window of another time zone',
    { windows: [{ ...FRIDAYS, start: '23:00', length: '1h', timeZone: 'Europe/Berlin' }] },
    { from: '2026-11-20T22:00:00Z', nodes: 2, of: 5 },
    '2026-11-27T22:50:00Z',
    'from 2026-11-20T22:00:00Z (23:00 Europe/Berlin) (measured)\n  ends     done at about 2026-11-27T22:50:00Z (23:50 Europe/Berlin), in the windows',
  ],
  [
    'a blackout',
    { blackouts: [{ from: '2026-11-20', to: '2026-11-20' }] },
    { from: '2026-11-21T00:00:00Z', nodes: 5, of: 5 },
    '2026-11-21T01:40:00Z',
    'done at about 2026-11-21T01:40:00Z, in the windows of the policy\n',
  ],
  [
    'no window is long enough',
    { windows: [{ ...FRIDAYS, length: '10m' }] },
    undefined,
    undefined,
    'never done: no window of the policy is long enough for a wave\n',
  ],
])('when it is done: %s', async (_name, spec, window, doneAt, said) => {
  const view = await previewIn({ workers: slow, policies: [buildUpgradePolicy('nights', spec)] });
  expect(view.duration).toMatchObject({
    ms: 100 * MINUTE,
    inWindows: true,
    ...(doneAt ? { doneAt } : {}),
  });
  expect([view.duration?.window, view.duration?.doneAt]).toEqual([window, doneAt]);
  expect(textOf(view)).toContain(said);
  expect(textOf(view)).toContain('about 1 h 40 min of work: 25 min a wave, ');
});

test('nothing more starts: no wave is shown, and no time', async () => {
  const status = statusOf(
    'SchedulableWait',
    [],
    recorded({ w1: 'SignalApplyFailed', w2: 'SignalSent', w3: 'SignalPending' }),
  );
  const commands = [{ k0supdate: buildUpdate({ targets: { workers: listed('w1', 'w2', 'w3') } }) }];
  const world = buildWorldOf([nodes, workers], [controlNodes, []], [jobs, []]);
  const running = buildPlan({ commands }, status);
  const [view] = await previewOpen(
    [{ dialect: autopilot, plans: () => [running], world }],
    HERE,
    T0,
  );
  expect(view?.stages[1]).toMatchObject({ moving: ['w2'], waves: [] });
  expect(view?.duration).toBeUndefined();
});

test('a file over a Plan of k0s that has ended: no wave, since nothing would run', async () => {
  const ended = {
    ...plan,
    status: { state: 'Completed', commands: [{ id: 0, state: 'Completed' }] },
  };
  const view = await preview('autopilot', plan, workers, READY, [ended]);
  expect(view.stages.flatMap(({ waves }) => waves)).toEqual([]);
  expect(view.duration).toBeUndefined();
  expect(view.reason).toContain('what is applied over it does not run: delete it first');
});

test('a virtual Node among the targets is named, and the plan is not refused for its version', async () => {
  const [first, ...others] = workers;
  const odd: Node = {
    ...(first ?? buildNode('w1')),
    status: { nodeInfo: { kubeletVersion: 'v1.19.10-vk-azure' } },
  };
  const text = textOf(await preview('autopilot', plan, [odd, ...others]));
  expect(text).toContain(
    'c1, c2, w2, w3: its version is unknown; w1: a virtual Node by its kubelet version v1.19.10-vk-azure',
  );
  expect(text).not.toContain('problem');
});

test('hosts on cgroup v1 hold the whole plan before its first drain, and are named with what mends it', async () => {
  const said = JSON.stringify({ version: '1.2.3', since: later(0), cgroupV1: 'refused' });
  const old = workers.slice(1).map((node) => annotated(node, { [AGENT_ANNOTATION]: said }));
  const text = textOf(await preview('autopilot', plan, [...workers.slice(0, 1), ...old]));
  expect(text).toContain(
    'w2, w3: the host has cgroup v1, which the kubelet of v1.36.3+k0s.2 refuses: boot it with cgroup v2, or set failCgroupV1: false in its worker profile and restart k0s; an agent with --allow-cgroup-v1 does not ask (HostUnfit)',
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
  // Where the pause is the first thing that holds it, the wait has said it.
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

/** Tests what a preview prints about the order of the nodes: the stages, the batches, and how long they take. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  names,
  plan,
  preview,
  previewIn,
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
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import { jobs, type Node, nodes } from '../../kube/resources.ts';
import { encodeReport } from '../../signal/annotations.ts';
import { HOLD_ANNOTATION } from '../../signal/holds.ts';
import { controlNodes } from '../../signal/names.ts';
import { previewNew, previewOpen } from './preview-command.ts';
import { type PlanPreview, renderPreview } from './view.ts';

const HERE = buildViewParts();

/** Returns the names of the nodes in each batch of a stage. */
function nodesOf({ stages }: PlanPreview, stage: number): (readonly string[])[] {
  return stages[stage]?.batches.map(({ nodes }) => nodes) ?? [];
}

test('the preview of a Plan of k0s shows stages in order, batches by slots, and what waits', async () => {
  const view = await preview('autopilot', plan, workers);
  expect(view).toMatchObject({ phase: 'new', stages: [{ maxInFlight: 1 }, { maxInFlight: 2 }] });
  expect(textOf(view)).toBe(`Plan autopilot (id1)  new
  controllers to v1.36.3+k0s.2, 1 at a time
    batch 1  c1
    batch 2  c2
  workers to v1.36.3+k0s.2, 2 at a time
    batch 1  w1, w2
    batch 2  w3
  waits    1 controller queued (1 at a time) (NoFreeSlot)
  waits    3 workers wait until the controllers are done (EarlierStage)
  takes    about 1 min 20 s of work: 20 s a batch; assumed for a node with nothing to drain; downloads take additional time
  unknown  whether the version rules allow it: c1, c2, w1, w2, w3: its version is unknown
`);
});

test('the preview of a Plan of the system-upgrade-controller shows batches by its concurrency', async () => {
  const hosts = names(3).map((name) =>
    buildNode(name, { labels: { 'kubernetes.io/hostname': name } }),
  );
  const view = await preview('cattle', buildCattlePlan('p', { concurrency: 2 }), hosts);
  expect(nodesOf(view, 0).map(({ length }) => length)).toEqual([2, 1]);
  expect(nodesOf(view, 0).flat().toSorted()).toEqual(names(3));
  expect(view.duration).toBeUndefined();
  expect(renderPreview({ leader: { state: 'none' }, plans: [view] }, T0)).toContain(
    'unknown  the order of its nodes: it depends on the uid, which the Plan gets when it is created',
  );
  const present = buildCattlePlan('p');
  const edited = await preview('cattle', buildCattlePlan('p'), hosts, READY, [present]);
  const order = cattleView.resolve(present, buildWorldOf([nodes, hosts], [jobs, []]), T0).stages[0]
    ?.targets;
  expect(nodesOf(edited, 0).flat()).toEqual(order?.map(({ name }) => name));
  expect(edited.unseen).toBeUndefined();
  const channel = await preview(
    'cattle',
    buildCattlePlan('p', { version: '', channel: 'https://example.com' }),
    hosts,
  );
  expect(channel.reason).toBe('waiting for the version of the channel');
});

test('the order of a policy: each node of the control plane in a batch of its own, then zone after zone', async () => {
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
  const view = await previewNew(buildCattlePlan('p', { concurrency: 4 }), seen, parts, T0);
  expect(nodesOf(view, 0).map((batch) => batch.toSorted())).toEqual([
    ['c1'],
    ['c2'],
    ['w2'],
    ['w1', 'w3'],
  ]);
});

test('a plan that runs: who is under way stands beside the batches; many batches are cut in text', async () => {
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
  expect(shown.stages[1]?.batches).toHaveLength(39);
  expect(textOf(shown)).toContain('    batch 12 w13\n    and 27 more batches\n');
  const stages = shown.stages.map((stage) => ({ ...stage, batches: stage.batches.slice(0, 13) }));
  expect(textOf({ ...shown, stages })).toContain('    batch 12 w13\n    and 1 more batch\n');
  expect(textOf()).toBe('There is no plan to preview: all have ended, or none exists.\n');
});

test('nodes that run the version already: told, and a batch of them takes a second', async () => {
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
  // After its upgrade, somebody put w3 back to the earlier version by hand.
  const view = await previewIn({ workers: [...there, updated('w3', 'v1.36.2+k0s')] });
  expect(view.stages[1]).toMatchObject({ there: ['w1', 'w2'], batches: [{ nodes: ['w3'] }] });
  expect(view.duration?.ms).toBe(2 * 20_000 + 1000 + 20_000);
  expect(textOf(view)).toContain(
    '    there    w1, w2: at v1.36.3+k0s.2 already, done within a second\n',
  );
});

test('the preview of a stage whose nodes all run the version already does not say that it has no targets', async () => {
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
  // No pod is evicted from a node that runs the version already.
  expect(view.drains).toBeUndefined();
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
    'takes    about 6 min of work: 1 min 30 s a batch; in the last run, 90 % of the nodes took at most this time, measured on 2 nodes\n',
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
  'batches of as many nodes as the policy lets be unavailable: %s',
  async (_name, spec, cordoned, batches) => {
    const hosts = [...names(3), 'x1'].map((name): Node => {
      const node = buildNode(name);
      return cordoned.includes(name) ? { ...node, spec: { unschedulable: true } } : node;
    });
    const view = await previewIn({ workers: hosts, policies: [buildUpgradePolicy('calm', spec)] });
    expect(nodesOf(view, 1)).toEqual(batches);
    expect(view.duration?.ms).toBe((2 + batches.length) * 20_000);
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
    'four batches do not fit into one window',
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
    'each batch settles for an hour',
    { blackouts: [{ from: '2026-11-20', to: '2026-11-20' }], settle: '1h' },
    { from: '2026-11-21T00:00:00Z', nodes: 5, of: 5 },
    '2026-11-21T05:40:00Z',
    'done at about 2026-11-21T05:40:00Z, in the windows of the policy\n',
  ],
  [
    'no window is long enough',
    { windows: [{ ...FRIDAYS, length: '10m' }] },
    undefined,
    undefined,
    'ends     never done, because no window of the policy is long enough for a batch\n',
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
  expect(textOf(view)).toContain('about 1 h 40 min of work: 25 min a batch; ');
});

test('the preview of a plan that starts no more nodes shows neither a batch nor a time', async () => {
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
  expect(view?.stages[1]).toMatchObject({ moving: ['w2'], batches: [] });
  expect(view?.duration).toBeUndefined();
});

test('a held node is in no batch: who holds it, why and until when', async () => {
  const hold = { by: 'ann', reason: 'disk', until: later(3_600_000) };
  const annotations = { [HOLD_ANNOTATION]: JSON.stringify(hold) };
  const hosts = names(3).map((name): Node => {
    const node = buildNode(name);
    return name === 'w1' ? { ...node, metadata: { ...node.metadata, annotations } } : node;
  });
  const view = await previewIn({ workers: hosts });
  expect(view.stages[1]?.held).toEqual([{ name: 'w1', ...hold }]);
  expect(nodesOf(view, 1)).toEqual([['w2', 'w3']]);
  expect(textOf(view)).toContain(
    `    held     w1 is held by ann: disk (ends at ${hold.until}, or with refit unhold w1)
    batch 1  w2, w3
`,
  );
});

test('the waves of a policy stand above their batches', async () => {
  const policies = [buildUpgradePolicy('canary', { waves: [{ count: 1 }, {}] })];
  const view = await previewIn({ policies });
  const { batches = [] } = view.stages[1] ?? {};
  expect(batches.map(({ wave, nodes }) => [wave, nodes.length])).toEqual([
    [1, 1],
    [2, 2],
  ]);
  expect(view.stages[0]?.batches).toEqual([{ nodes: ['c1'] }, { nodes: ['c2'] }]);
  expect(textOf(view)).toMatch(
    / {4}wave 1 of the policy\n {4}batch 1 {2}w\d\n {4}wave 2 of the policy\n {4}batch 2 {2}w\d, w\d\n/,
  );
});

test.each([
  [
    'counted',
    {
      byNode: new Map([
        ['w1', 2],
        ['w3', 1],
      ]),
    },
    ['w2', 'w3', 'w1'],
    'order',
  ],
  ['not counted', { problem: 'pods is forbidden' }, ['w1', 'w2', 'w3'], 'unknown'],
])(
  'pods of budgets that are %s decide the batches or are named as unknown',
  async (_what, found, order, heading) => {
    const drain = { startWith: 'FewestBudgetPods' as const };
    const policies = [buildUpgradePolicy('careful', { drain })];
    const sources = { budgetPods: async () => await Promise.resolve(found) };
    const shown = await previewIn({ policies, sources });
    const { batches = [] } = shown.stages.find(({ role }) => role === 'worker') ?? {};
    expect(batches.flatMap(({ nodes }) => nodes)).toEqual(order);
    const lines = textOf(shown)
      .split('\n')
      .map((line) => line.trim());
    const told = lines.filter((line) => line.includes('`drain.startWith`'));
    expect(told).toEqual([expect.stringMatching(new RegExp(`^${heading} `))]);
  },
);

test('the batches of a wave that needs an approval say so, and those of an approved wave do not', async () => {
  const waves = [{ count: 1 }, { count: 1, approval: 'Manual' as const }, {}];
  const view = await previewIn({ policies: [buildUpgradePolicy('canary', { waves })] });
  expect(view.stages[1]?.batches.map(({ needsApproval }) => needsApproval)).toEqual([
    undefined,
    true,
    undefined,
  ]);
  const text = textOf(view);
  expect(text).toContain('\n    wave 1 of the policy\n');
  expect(text).toContain('\n    wave 2 of the policy, which waits for refit approve\n');
  expect(text).toContain('\n    wave 3 of the policy\n');
});

test('the stages of a plan with several commands name their command', async () => {
  const view = await previewIn({});
  const stages = view.stages.map((stage, command) => ({ ...stage, command }));
  expect(textOf({ ...view, stages })).toContain('\n  workers of spec.commands[1] to v1.36.3+k0s.2');
});

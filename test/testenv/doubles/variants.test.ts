/**
 * Tests that doubles of older and newer k0s work together in one cluster as designed: which process cordons, and how
 * that is marked.
 */
import { expect, test } from 'vitest';
import type { Plan } from '../../../src/api/autopilot/plan.ts';
import { leases, nodes } from '../../../src/kube/resources.ts';
import { CENTRAL_CORDONING_LABEL, controlNodes } from '../../../src/signal/names.ts';
import { NEW } from '../../support/doubles/payload-files.ts';
import { VARIANTS } from '../../support/doubles/quirks.ts';
import { loadRecording } from '../../support/doubles/recorded-plan.ts';
import { LEADER_LEASE } from '../../support/doubles/runtime/lease-election.ts';
import type { Write } from '../../support/doubles/runtime/recorder.ts';
import { type Stage, startStage } from '../../support/doubles/stage.ts';
import { linesByObject } from '../../support/doubles/write-lines.ts';

const OLDER = VARIANTS['<=1.34'];
const NEWER = VARIANTS['>=1.35'];

/** Returns a plan that updates the named nodes to NEW, whatever version they run. */
function planFor(stage: Stage, controllers: readonly string[], workers: readonly string[]): Plan {
  const plan = loadRecording('02b-forced-same-version-string').plan(stage.downloads);
  const platforms = { 'linux-amd64': { url: `${stage.downloads.url}/b/k0s-new` } };
  const listed = (names: readonly string[]) => ({ discovery: { static: { nodes: [...names] } } });
  const targets = { controllers: listed(controllers), workers: listed(workers) };
  return {
    ...plan,
    spec: { ...plan.spec, commands: [{ k0supdate: { version: NEW, platforms, targets } }] },
  };
}

/**
 * Treats this refusal like a conflict. A node that writes its Node with the state before the controller manager's taint
 * would remove the taint, which is forbidden. Timing decides whether the write is forbidden or conflicts.
 */
function staleAs409({ by, resource, verb, code }: Write): number {
  return by.startsWith('system:node:') && resource === 'nodes' && verb === 'update' && code === 403
    ? 409
    : code;
}

async function update(stage: Stage, controllers: readonly string[], workers: readonly string[]) {
  const start = stage.recorder.writes.length;
  await stage.create(planFor(stage, controllers, workers));
  await stage.untilPlan('Completed');
  const writes = stage.recorder.writes
    .slice(start)
    .map((write) => ({ ...write, code: staleAs409(write) }));
  return linesByObject(writes);
}

const CORDON = 'patch 200 {"spec":{"unschedulable":true}}';
const UNCORDON = 'patch 200 {"spec":{"unschedulable":null}}';

/** Returns the lines for a worker that `cordons` cordons. The worker's new release leaves the uncordon to the leader. */
const workerLines = (cordons: string): string[] => [
  'leader update 200 none',
  'node update 200 Downloading',
  'node update 200 Cordoning',
  `${cordons} ${CORDON}`,
  `${cordons} update 409 ApplyingUpdate`,
  `${cordons} update 200 ApplyingUpdate`,
  'node update 200 Restart',
  'node patch lease 200',
  'node patch lease 422',
  'node update 200 UnCordoning',
  `leader ${UNCORDON}`,
  'leader update 409 Completed',
  'leader update 200 Completed',
];

test('under a leader of 1.35 a worker of 1.34 cordons itself, and leaves the uncordoning to the leader once it is newer', async () => {
  await using stage = await startStage({
    controllers: ['c3'],
    workers: ['w1'],
    versions: { c3: NEWER, w1: OLDER },
  });
  expect((await update(stage, [], ['w1']))['w1']).toEqual(workerLines('node'));
});

test('a worker of 1.35 leaves both to its leader', async () => {
  await using stage = await startStage({
    controllers: ['c3'],
    workers: ['w1'],
    versions: { c3: NEWER, w1: NEWER },
  });
  expect((await update(stage, [], ['w1']))['w1']).toEqual(workerLines('leader'));
  const lease = await stage.client.get(leases, LEADER_LEASE.name, {
    namespace: LEADER_LEASE.namespace,
  });
  expect(lease.metadata.labels?.[CENTRAL_CORDONING_LABEL]).toBe(lease.spec?.holderIdentity);
});

test('under a leader of 1.34 everybody does it alone, and no lease says anything', async () => {
  await using stage = await startStage({
    controllers: ['c3'],
    workers: ['w1'],
    versions: { c3: OLDER, w1: OLDER },
  });
  const lines = await update(stage, [], ['w1']);
  const own = workerLines('node').map((line) =>
    line.replace(/^leader (?!update 200 none)/, 'node '),
  );
  expect(lines['w1']).toEqual(own);
  const lease = await stage.client.get(leases, LEADER_LEASE.name, {
    namespace: LEADER_LEASE.namespace,
  });
  expect(lease.metadata.labels ?? {}).not.toHaveProperty(CENTRAL_CORDONING_LABEL);
});

test('a controller that is a worker, too, is updated through its ControlNode, and its Node is cordoned', async () => {
  const stage = await startStage({ controllers: ['c3', 'c1'], workloads: ['c1'] });
  await using _ = stage;
  expect((await stage.client.get(controlNodes, 'c1')).metadata.annotations).toMatchObject({
    'autopilot.k0sproject.io/mode': 'controller+worker',
  });
  // The plan also lists c1 as a worker, but the leader excludes it from the workers.
  const lines = await update(stage, ['c1'], ['c1']);
  expect(lines['plan']?.at(-1)).toBe('leader update 200 Completed #0 Completed c1=SignalCompleted');
  expect(lines['c1']).toEqual([
    'leader update 200 none',
    'self update 200 Downloading',
    'self update 200 Cordoning',
    `leader ${CORDON}`,
    'leader update 200 ApplyingUpdate',
    'self update 200 Restart',
    'self update status 200',
    'leader patch lease 200',
    'leader patch lease 422',
    'self update 200 UnCordoning',
    `leader ${UNCORDON}`,
    'leader update 200 Completed',
  ]);
  expect((await stage.client.get(nodes, 'c1')).spec?.unschedulable).toBeUndefined();
});

test.each([
  ['v1.35.2+k0s.0', 'SchedulableWait', 0],
  [NEWER, 'Completed', 2],
])(
  '%s on a controller that is a worker, too: a plan with a bundle for it is %s',
  async (version, state, downloads) => {
    const cast = {
      controllers: ['c3', 'c1'],
      workloads: ['c1'],
      versions: { c1: version },
      picks: ['c1', 'c1'],
    };
    await using stage = await startStage({ ...cast, faults: [{ paceMs: 2, times: 2 }] });
    const plan = loadRecording('05b-airgap-content-disposition').plan(stage.downloads);
    const text = JSON.stringify(plan.spec.commands).replace('"w3"', '"c1"');
    plan.spec.commands = JSON.parse(text) as Plan['spec']['commands'];
    await stage.create(plan);
    await stage.until(async () =>
      expect((await stage.client.get(nodes, 'c1')).metadata.annotations).toBeDefined(),
    );
    await stage.untilPlan(state);
    await stage.until(() => expect(stage.downloads.requests).toHaveLength(downloads));
  },
);

test('a leader of 1.34 ends a plan for a controller that is not ready', async () => {
  await using stage = await startStage({
    controllers: ['c3', 'c1'],
    versions: { c3: OLDER, c1: OLDER },
  });
  await stage.host('c1').powerOff();
  await stage.create(planFor(stage, ['c1'], []));
  await stage.untilPlan('InconsistentTargets');
});

test('a leader of today asks again, and signals nobody meanwhile', async () => {
  await using stage = await startStage({ controllers: ['c3', 'c1'] });
  await stage.host('c1').powerOff();
  await stage.create(planFor(stage, ['c1', 'c3'], []));
  await stage.until(() => {
    const asked = stage.logs.get('c3')?.filter((line) => line.includes('not ready')) ?? [];
    expect(asked.length).toBeGreaterThan(2);
  });
  expect(await stage.planState()).toBe('Schedulable');
  expect([await stage.status('c1'), await stage.status('c3')]).toEqual(['', '']);
});

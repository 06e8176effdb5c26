/**
 * Tests `refit rollback` of Rancher's Plans on a real API server, with the operator's role: which nodes are rolled
 * back, and in which order.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { reportReady } from '../../sandbox/cluster/objects.ts';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { nodeRollouts } from '../../src/api/kinds.ts';
import { nodes } from '../../src/kube/resources.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { conditionOf, NAMESPACE, planOf } from './cattle-rig.ts';
import { CattleScene, PATIENCE } from './cattle-scene.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const OLD = 'v1.36.2+k3s1';
const NEW = 'v1.36.3+k3s1';
const SERVER = 'back-server';
const WORKERS = ['back-agent-1', 'back-agent-2'];
const LATE = 'back-agent-3';
const ROLE = 'node-role.kubernetes.io/control-plane';
const upgrade = { image: 'rancher/k3s-upgrade' };
const SERVERS = planOf('back-servers', { version: NEW, upgrade });
const AGENTS = planOf('back-agents', {
  version: NEW,
  upgrade,
  nodeSelector: { matchLabels: { pool: 'back-agents' } },
  prepare: { image: 'rancher/k3s-upgrade', args: ['prepare', 'back-servers'] },
});

let scene: CattleScene;
beforeAll(async () => {
  scene = await CattleScene.open(
    { servers: [SERVER], 'back-agents': [...WORKERS, LATE] },
    installKinds,
  );
  const labels = { metadata: { labels: { [ROLE]: 'true' } } };
  await scene.admin.patch(nodes, SERVER, labels, { type: 'merge' });
  for (const name of [SERVER, ...WORKERS, LATE]) await runs(name, OLD);
});
afterAll(async () => await scene.close());

/** Reports that the node runs the version, as its kubelet would after the Job. */
async function runs(name: string, version: string): Promise<void> {
  await reportReady(scene.admin, name, version, rfc3339(systemClock.now()));
}

/** Joins the lines into one text, without the spaces that align a table. */
const flat = (lines: readonly string[]): string => lines.join(' ').replaceAll(/ +/g, ' ');

async function refit(...args: readonly string[]) {
  const connection = ['--kubeconfig', await kubeconfigFor('operator')];
  const { code, stdout, stderr } = await runRefit(...args, ...connection);
  return { code, stdout: flat(stdout), stderr: flat(stderr) };
}

const rollBack = async (name: string, ...more: readonly string[]) =>
  await refit('rollback', `cattle/${NAMESPACE}/${name}`, '--yes', '--reason', 'bad', ...more);

async function hashOf(name: string): Promise<string | undefined> {
  const { metadata } = await scene.admin.get(nodes, name);
  return metadata.labels?.['plan.upgrade.cattle.io/back-agents'];
}

/** Resolves when the run has ended and the leader has recorded the previous versions of the nodes. */
async function ended(name: string): Promise<void> {
  await scene.until(name, 'Complete', 'True', 'Complete');
  await vi.waitFor(async () => {
    const found = await scene.admin.get(nodeRollouts, `cattle-${name}`, { namespace: NAMESPACE });
    const [run] = found.status?.history ?? [];
    expect(run).toMatchObject({ phase: 'done', before: [{ version: OLD }] });
  }, PATIENCE);
}

/**
 * Resolves with the Plan when it is complete at the older version. Before that, it may be complete at the newer
 * version.
 */
async function completeAtOld(name: string): Promise<CattlePlan> {
  return await vi.waitFor(async () => {
    const found = await scene.plan(name);
    expect(found.status).toMatchObject({ latestVersion: 'v1.36.2-k3s1' });
    expect(conditionOf(found, 'Complete')).toMatchObject({ status: 'True' });
    return found;
  }, PATIENCE);
}

const imageOf = ['--image', 'example.com/k3s-any-way'];

test('the workers go back before the servers, and a node that never moved stays', async () => {
  await scene.apply(SERVERS);
  await ended('back-servers');
  await runs(SERVER, NEW);
  expect(await refit('hold', LATE)).toMatchObject({ code: 0 });
  await scene.apply(AGENTS);
  await vi.waitFor(async () => {
    const labels = await Promise.all(WORKERS.map(async (name) => await hashOf(name)));
    expect(labels.every((label) => label !== undefined)).toBe(true);
  }, PATIENCE);
  for (const name of WORKERS) await runs(name, NEW);
  const runsOn = await rollBack('back-agents', ...imageOf);
  expect(runsOn).toMatchObject({ code: 1, stderr: expect.stringContaining('the plan still runs') });
  const aborted = await refit('abort', '--plan', 'back-agents', '--reason', 'bad');
  expect(aborted).toMatchObject({ code: 0 });
  await scene.until('back-agents', 'RefitAborted', 'True', 'Aborted');
  expect(await refit('unhold', LATE)).toMatchObject({ code: 0 });

  const stuck = await rollBack('back-agents');
  expect(stuck).toMatchObject({ code: 1, stderr: expect.stringContaining('Use --image') });
  const early = await rollBack('back-servers', ...imageOf);
  expect(early).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`worker ${WORKERS[0]} runs ${NEW}`),
  });

  const { metadata } = await scene.plan('back-agents');
  const tried = await rollBack('back-agents', ...imageOf, '--dry-run', 'server');
  expect(tried).toMatchObject({ code: 0, stdout: expect.stringContaining('Nothing was written') });
  expect((await scene.plan('back-agents')).metadata.generation).toBe(metadata.generation);

  const { code, stdout, stderr } = await rollBack('back-agents', ...imageOf);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const name of WORKERS) expect(stdout).toContain(`${name} worker ${NEW} ${OLD}`);
  expect(stdout).toContain(
    `not rolled back: ${LATE} was not changed by the run; spec.nodeSelector excludes it`,
  );
  expect(stdout).toContain('spec.prepare is removed');
  const back = await completeAtOld('back-agents');
  expect(back.metadata.annotations).toMatchObject({
    'refit.upgrade.cattle.io/rolls-back-to': OLD,
    'refit.upgrade.cattle.io/rolls-back-reason': 'refit-operator: bad',
  });
  const hosts = (await scene.jobsOf('back-agents')).map(
    ({ metadata: { labels } }) => labels?.['upgrade.cattle.io/node'],
  );
  expect(hosts).not.toContain(LATE);
  expect(await hashOf(LATE)).toBeUndefined();
  for (const name of WORKERS) await runs(name, OLD);

  const servers = await rollBack('back-servers', ...imageOf);
  expect(servers).toMatchObject({ code: 0, stderr: '' });
  expect(servers.stdout).toContain(`${SERVER} server ${NEW} ${OLD}`);
  await completeAtOld('back-servers');
});

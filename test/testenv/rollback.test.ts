/** Tests `refit rollback` on a real API server: the order back, which nodes go back, when it is refused, and a forged annotation. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createControlNode, deleteObjects, reportReady } from '../../sandbox/cluster/objects.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { ROLLS_BACK_ANNOTATION } from '../../src/engine/model/earlier-versions.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { buildPlan, buildUpdate, listed, SHA256 } from '../support/builders/plans.ts';
import { CONTROLLER_ADDRESSES, installKinds, kubeconfigFor } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const CONTROLLERS = ['back-c1', 'back-c2'];
const URL = [
  '--url',
  'linux-amd64=https://example.com/k0s-old',
  '--sha256',
  `linux-amd64=${SHA256}`,
];
let admin: KubeClient;
let leader: RefitProcess;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  for (const [at, name] of CONTROLLERS.entries()) {
    await createControlNode(admin, name, CONTROLLER_ADDRESSES[at] ?? '127.0.0.11');
    await runsOn(name, OLD);
  }
  leader = new RefitProcess('controller', '--kubeconfig', await kubeconfigFor('controller'));
});

afterAll(async () => {
  expect(await leader.stop('SIGTERM')).toBe(0);
  for (const name of CONTROLLERS) await deleteObjects(admin, name);
  admin.close();
});

async function runsOn(name: string, version: string): Promise<void> {
  if (!CONTROLLERS.includes(name))
    return await reportReady(admin, name, version, '2026-11-20T08:00:00Z');
  const patch = { status: { k0sVersion: version } };
  await admin.patch(controlNodes, name, patch, { type: 'merge', subresource: 'status' });
}

/** Stands in for all agents: each signalled node runs its version at once. Returns the names in the order in which they moved. */
function agentsOf(names: readonly string[]): { readonly moved: string[] } {
  const moved: string[] = [];
  const over = new AbortController();
  const look = async (name: string): Promise<void> => {
    const resource = CONTROLLERS.includes(name) ? controlNodes : nodes;
    const object = await admin.get(resource, name);
    const signal = decodeSignal(object.metadata.annotations);
    if (signal === undefined || signal.status !== undefined) return;
    await runsOn(name, signal.command.version);
    const status = { status: 'Completed', timestamp: rfc3339(Date.now()) };
    const annotations = encodeSignal({ ...signal, status });
    moved.push(name);
    await admin.patch(resource, name, { metadata: { annotations } }, { type: 'merge' });
  };
  const work = (async () => {
    while (!over.signal.aborted) {
      for (const name of names) await look(name);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  onTestFinished(async () => {
    over.abort();
    await work;
  });
  return { moved };
}

async function refit(...args: readonly string[]) {
  const result = await runRefit(...args, '--kubeconfig', await kubeconfigFor('operator'));
  const flat = (lines: readonly string[]): string => lines.join(' ').replaceAll(/\s+/g, ' ');
  return { code: result.code, stdout: flat(result.stdout), stderr: flat(result.stderr) };
}

const rollback = async (...more: readonly string[]) =>
  await refit('rollback', 'plan/autopilot', '--yes', '--reason', 'bad release', ...URL, ...more);

async function upgrade(...workers: readonly string[]): Promise<void> {
  const targets = {
    controllers: listed(...CONTROLLERS),
    workers: { ...listed(...workers), limits: { concurrent: 1 } },
  };
  const k0supdate = buildUpdate({ version: NEW, targets });
  const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate }] });
  await admin.create(plans, { ...rest, metadata: { name: metadata.name } });
}

const versionsNow = async (names: readonly string[]) =>
  await Promise.all(
    names.map(async (name) =>
      CONTROLLERS.includes(name)
        ? (await admin.get(controlNodes, name)).status?.k0sVersion
        : (await admin.get(nodes, name)).status?.nodeInfo?.kubeletVersion,
    ),
  );

test('all nodes go back, workers first, and nothing lets a forged annotation do the same', async () => {
  const workers = ['back-w1', 'back-w2', 'back-w3'];
  await using puppets = await Puppets.create(admin, ...workers);
  const all = [...CONTROLLERS, ...workers];
  const { moved } = agentsOf(all);
  await upgrade(...workers);
  expect((await puppets.end()).state).toBe('Completed');
  expect(moved).toEqual(all);

  const dry = await rollback('--dry-run', 'server');
  expect(dry, dry.stderr).toMatchObject({ code: 0 });
  expect(dry.stdout).toContain('Nothing was written');
  const { metadata: old } = await admin.get(plans, 'autopilot');
  const said = await rollback();
  expect(said, said.stderr).toMatchObject({ code: 0 });
  expect(await puppets.end()).toEqual({ state: 'Completed', description: undefined });
  expect(moved.slice(5)).toEqual([...workers, ...CONTROLLERS]);
  expect(await versionsNow(all)).toEqual(all.map(() => OLD));
  const made = await admin.get(plans, 'autopilot');
  expect(made.metadata.annotations?.[ROLLS_BACK_ANNOTATION]).toBe(`${old.uid}/id1`);

  // The record says that w1 ran OLD before, so no annotation brings it to another version.
  await admin.delete(plans, 'autopilot');
  const targets = { workers: listed('back-w1') };
  const k0supdate = buildUpdate({ version: 'v1.36.2+k0s.0', targets });
  const { metadata, ...rest } = buildPlan({ id: 'forged', commands: [{ k0supdate }] });
  const annotations = { [ROLLS_BACK_ANNOTATION]: `${old.uid}/id1` };
  await admin.create(plans, { ...rest, metadata: { name: metadata.name, annotations } });
  expect((await puppets.end()).description).toContain(
    'rule Downgrade; versions.allow: [Downgrade]',
  );
  expect(moved).toHaveLength(10);
});

test('it is refused while the plan runs; after an abort only the nodes that moved go back', async () => {
  const workers = ['part-w1', 'part-w2'];
  await using puppets = await Puppets.create(admin, ...workers);
  const { moved } = agentsOf([...CONTROLLERS, 'part-w1']);
  await upgrade(...workers);
  await puppets.until(async () => expect(await puppets.signal('part-w2')).toBeDefined());
  const early = await rollback();
  expect(early.code).toBe(1);
  expect(early.stderr).toContain('still runs: end it first with refit abort');
  expect((await refit('abort', '--reason', 'bad release')).code).toBe(0);
  expect((await puppets.end()).state).not.toBe('Completed');

  const said = await rollback();
  expect(said, said.stderr).toMatchObject({ code: 0 });
  expect((await puppets.end()).state).toBe('Completed');
  expect(moved.slice(3)).toEqual(['part-w1', ...CONTROLLERS]);
});

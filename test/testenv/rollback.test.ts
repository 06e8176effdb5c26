/**
 * Tests `refit rollback` on a real API server with the role of the operator: which nodes are rolled back, in which
 * order, and that a forgery does not disable a version rule.
 */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { createControlNode, deleteObjects, reportReady } from '../../sandbox/cluster/objects.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { nodeRollouts } from '../../src/api/kinds.ts';
import { ROLLS_BACK_ANNOTATION } from '../../src/engine/model/earlier-versions.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { kubeletVersionOf, nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { decodeSignal, encodeReport, encodeSignal } from '../../src/signal/annotations.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { rfc3339, sleep, systemClock } from '../../src/util/clock.ts';
import { kubernetesPartOf } from '../../src/versions/release-parts.ts';
import { buildPlan, buildUpdate, listed, SHA256 } from '../support/builders/plans.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const OLDER = 'v1.36.2+k0s.0';
const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const CONTROLLERS = ['back-c1', 'back-c2'];
/** The statuses that a node can report last for a signal. */
const ENDS = ['Completed', 'Failed'];
const KIND = 'plans.autopilot.k0sproject.io';
const DOWNLOAD = [
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
  // The leader asks each controller whether its API server is ready. In this test, both controllers have the same API
  // server.
  for (const name of CONTROLLERS) await createControlNode(admin, name, '127.0.0.1');
  const path = await kubeconfigFor('controller');
  leader = new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
});

afterAll(async () => {
  expect(await leader.stop('SIGTERM')).toBe(0);
  for (const name of CONTROLLERS) await deleteObjects(admin, name);
  admin.close();
});

beforeEach(async () => {
  for (const name of CONTROLLERS) await runs(name, OLD);
});

const isController = (name: string): boolean => CONTROLLERS.includes(name);

/** The build that each node runs. The kubelet of a worker does not report it. */
const builds = new Map<string, string>();

/** Reports that the node runs the version, as its kubelet or its controller would. */
async function runs(name: string, k0sVersion: string): Promise<void> {
  builds.set(name, k0sVersion);
  if (!isController(name))
    return await reportReady(admin, name, k0sVersion, rfc3339(systemClock.now()));
  const options = { type: 'merge', subresource: 'status' } as const;
  await admin.patch(controlNodes, name, { status: { k0sVersion } }, options);
}

/** Returns the version that the node runs, after a comparison with what its object shows. */
async function versionOf(name: string): Promise<string | undefined> {
  const version = builds.get(name) ?? OLD;
  if (isController(name)) {
    const { status } = await admin.get(controlNodes, name);
    expect(status?.k0sVersion).toBe(version);
  } else expect(kubeletVersionOf(await admin.get(nodes, name))).toBe(kubernetesPartOf(version));
  return version;
}

/**
 * Stand-ins for the agents of nodes. Each stand-in installs the version of its signal immediately, and reports which
 * build ran before. They end before their nodes are deleted.
 */
class Agents implements AsyncDisposable {
  /** The names of the nodes that have changed their version, in the order of these changes. */
  readonly moved: string[] = [];
  readonly #names: Set<string>;
  readonly #over = new AbortController();
  readonly #work: Promise<void>;

  constructor(...names: readonly string[]) {
    this.#names = new Set(names);
    this.#work = this.#run();
    // The caller that disposes of the agents receives the failure. Until then nobody awaits this promise.
    this.#work.catch(() => undefined);
  }

  /** Gives this node an agent as well. */
  add(name: string): void {
    this.#names.add(name);
  }

  async #run(): Promise<void> {
    while (!this.#over.signal.aborted) {
      for (const name of this.#names) await this.#follow(name);
      await sleep(systemClock, PATIENCE.interval, this.#over.signal).catch(() => undefined);
    }
  }

  async #follow(name: string): Promise<void> {
    const resource = isController(name) ? controlNodes : nodes;
    const signal = decodeSignal((await admin.get(resource, name)).metadata.annotations);
    if (signal === undefined || ENDS.includes(signal.status?.status ?? '')) return;
    const from = builds.get(name) ?? OLD;
    await runs(name, signal.command.version);
    this.moved.push(name);
    const status = { status: 'Completed', timestamp: rfc3339(systemClock.now()) };
    const annotations = {
      ...encodeSignal({ ...signal, status }),
      ...encodeReport({ created: signal.created, from }),
    };
    await admin.patch(resource, name, { metadata: { annotations } }, { type: 'merge' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#work;
  }
}

/** Runs a command as the operator. Returns each output as one line, whatever the width of the terminal. */
async function refit(...args: readonly string[]) {
  const { code, stdout, stderr } = await runRefit(
    ...args,
    '--kubeconfig',
    await kubeconfigFor('operator'),
  );
  const flat = (lines: readonly string[]): string => lines.join(' ').replaceAll(/\s+/g, ' ');
  return { code, stdout: flat(stdout), stderr: flat(stderr) };
}

const rollBack = async (...more: readonly string[]) =>
  await refit('rollback', 'autopilot', '--yes', '--reason', 'bad release', ...DOWNLOAD, ...more);

/** Rolls back, expects success, and returns the output. The leader may write the Plan at the same time. */
async function rolledBack(...more: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await rollBack(...more);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/**
 * Creates a Plan for the new version, one node at a time, and waits until the leader has recorded the previous versions
 * of its nodes.
 */
async function upgrade(...workers: readonly string[]): Promise<Plan> {
  const targets = {
    controllers: listed(...CONTROLLERS),
    workers: { ...listed(...workers), limits: { concurrent: 1 } },
  };
  const k0supdate = buildUpdate({ version: NEW, targets });
  const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate }] });
  const plan = await admin.create(plans, { ...rest, metadata: { name: metadata.name } });
  await vi.waitFor(async () => {
    const { items } = await admin.list(nodeRollouts);
    const runsOf = items.flatMap(({ status }) => status?.history ?? []);
    expect(runsOf.find(({ planUid }) => planUid === plan.metadata.uid)?.before).toBeDefined();
  }, PATIENCE);
  return plan;
}

/**
 * Replaces the present Plan, as the operator, by a Plan for one worker. The annotation of the new Plan says that it
 * rolls `run` back.
 */
async function forge(run: string, worker: string, version: string): Promise<void> {
  const deleted = await kubectlAs('operator', ['delete', KIND, 'autopilot']);
  expect(deleted).toMatchObject({ ok: true });
  const k0supdate = buildUpdate({ version, targets: { workers: listed(worker) } });
  const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate }] });
  const annotations = { [ROLLS_BACK_ANNOTATION]: run };
  const forged = { ...rest, metadata: { name: metadata.name, annotations } };
  const created = await kubectlAs('operator', ['create', '-f', '-'], JSON.stringify(forged));
  expect(created).toMatchObject({ ok: true });
}

test('all nodes go back to what they ran: all workers before any controller', async () => {
  const workers = ['back-w1', 'back-w2', 'back-w3'];
  const all = [...CONTROLLERS, ...workers];
  await using puppets = await Puppets.create(admin, ...workers);
  const { metadata } = await upgrade(...workers);
  await using agents = new Agents(...all);
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect(agents.moved).toEqual(all);
  expect(await Promise.all(all.map(versionOf))).toEqual(all.map(() => NEW));

  expect(await rolledBack('--dry-run', 'server')).toContain('Nothing was written');
  expect((await admin.get(plans, 'autopilot')).metadata.uid).toBe(metadata.uid);
  const said = await rolledBack();
  for (const name of workers) expect(said).toContain(`${name} worker ${NEW} ${OLD}`);
  for (const name of CONTROLLERS) expect(said).toContain(`${name} controller ${NEW} ${OLD}`);
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  const back = agents.moved.slice(all.length);
  expect(back.slice(0, workers.length).toSorted()).toEqual(workers);
  expect(back.slice(workers.length).toSorted()).toEqual(CONTROLLERS);
  expect(await Promise.all(all.map(versionOf))).toEqual(all.map(() => OLD));
  const made = await admin.get(plans, 'autopilot');
  expect(made.metadata.annotations).toMatchObject({
    [ROLLS_BACK_ANNOTATION]: `${metadata.uid}/id1`,
    'upgrade.refit.dev/rolls-back-reason': 'refit-operator: bad release',
  });
});

test('after an abort the nodes that have moved go back, and the others are left alone', async () => {
  const workers = ['part-w1', 'part-w2', 'part-w3'];
  await using puppets = await Puppets.create(admin, ...workers);
  await upgrade(...workers);
  await using agents = new Agents(...CONTROLLERS, 'part-w1');
  await puppets.says('part-w2', 'Restart');
  expect(await rollBack()).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('the plan still runs: end it first with refit abort'),
  });
  expect(await refit('abort', '--reason', 'bad release')).toMatchObject({ code: 0 });
  expect(await rollBack()).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('nodes of it are still in progress'),
  });
  agents.add('part-w2');
  expect((await puppets.end()).state).not.toBe('Completed');
  const moved = [...CONTROLLERS, 'part-w1', 'part-w2'];
  expect(agents.moved).toEqual(moved);

  agents.add('part-w3');
  expect(await rolledBack()).toContain(
    `not rolled back: part-w3 still runs ${kubernetesPartOf(OLD)}`,
  );
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  const back = agents.moved.slice(moved.length);
  expect(back.slice(0, 2).toSorted()).toEqual(['part-w1', 'part-w2']);
  expect(back.slice(2).toSorted()).toEqual(CONTROLLERS);
  expect(await puppets.signal('part-w3')).toBeUndefined();
  const all = [...CONTROLLERS, ...workers];
  expect(await Promise.all(all.map(versionOf))).toEqual(all.map(() => OLD));
});

test('neither a forged annotation nor a forged record lifts the rule Downgrade', async () => {
  await using puppets = await Puppets.create(admin, 'forged-w1', 'forged-w2');
  const { metadata } = await upgrade('forged-w1');
  await using agents = new Agents(...CONTROLLERS, 'forged-w1');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  const { length } = agents.moved;
  const refused = expect.stringContaining('rule Downgrade; versions.allow: [Downgrade]');

  // The run exists, but this node ran another version before the run.
  await forge(`${metadata.uid}/id1`, 'forged-w1', OLDER);
  expect(await puppets.end()).toEqual({ state: 'Warning', description: refused });
  // The run exists, but this node was not a target of the run.
  await forge(`${metadata.uid}/id1`, 'forged-w2', OLDER);
  expect(await puppets.end()).toEqual({ state: 'Warning', description: refused });
  // This run has never existed.
  await forge('11111111-2222-3333-4444-555555555555/id1', 'forged-w1', OLD);
  expect(await puppets.end()).toEqual({ state: 'Warning', description: refused });

  // Only the leader may write the record, so the API server refuses this patch.
  const { items } = await admin.list(nodeRollouts);
  const [record] = items.filter(({ status }) =>
    status?.history?.some(({ planUid }) => planUid === metadata.uid),
  );
  const status = { history: [{ ...record?.status?.history?.[0], before: [] }] };
  const args = ['patch', 'noderollouts.upgrade.refit.dev', record?.metadata.name ?? ''];
  const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
  const written = await kubectlAs('operator', [...args, ...patch]);
  expect(written).toMatchObject({ ok: false, stderr: expect.stringContaining('Forbidden') });
  expect(agents.moved).toHaveLength(length);
  expect(await versionOf('forged-w1')).toBe(NEW);
});

/**
 * Tests on a real control plane that a Plan of k0s and a Plan of Rancher share nodes and one budget. Each Plan has its
 * own process.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import { holds } from '../../src/dialects/cattle/plan/conditions.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import {
  annotated,
  compareResourceVersions,
  type Job,
  jobs,
  type KubeObject,
  type Node,
  nodes,
} from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { encodePresence } from '../../src/signal/agent-presence.ts';
import { decodeSignal, encodeSignal } from '../../src/signal/annotations.ts';
import { claimOn, signallerOf } from '../../src/signal/at-work.ts';
import { AGENT_ANNOTATION } from '../../src/signal/names.ts';
import { rfc3339, sleep, systemClock } from '../../src/util/clock.ts';
import { KUBERNETES_VERSION } from '../../tools/controlplane/components.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { conditionOf, NAMESPACE, nodeOf, planOf, startController } from './cattle-rig.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 120_000, interval: 200 };
const NODES = ['both-1', 'both-2', 'both-3'];
const HERE = { nodeSelector: { matchLabels: { pool: 'both' } }, version: 'v1', concurrency: 3 };

let directory = '';
let admin: KubeClient;
let cattle: Process;
let k0s: RefitProcess;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-both-'));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  admin = await clientOf('admin');
  await installKinds();
  const presence = encodePresence({ version: '1.0.0', since: '2026-11-20T08:00:00Z' });
  for (const name of NODES)
    await admin.create(
      nodes,
      annotated(nodeOf(name, { pool: 'both' }), { [AGENT_ANNOTATION]: presence }),
    );
  cattle = await startController(directory, {});
  k0s = new RefitProcess('controller', '--kubeconfig', await kubeconfigFor('controller'));
});

afterAll(async () => {
  await k0s.stop('SIGTERM');
  await cattle.stop();
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', '--all', '-n', NAMESPACE]);
  await kubectlAs('admin', ['delete', 'plans.autopilot.k0sproject.io', '--all']);
  await vi.waitFor(
    async () => expect((await admin.list(jobs, { namespace: NAMESPACE })).items).toEqual([]),
    PATIENCE,
  );
  for (const name of NODES) await admin.delete(nodes, name);
  admin.close();
  await rm(directory, { recursive: true });
});

async function createK0sPlan(names: readonly string[]): Promise<void> {
  const workers = { ...listed(...names), limits: { concurrent: names.length } };
  // The simulated Nodes have the version of the API server.
  const version = `${KUBERNETES_VERSION}+k0s.2`;
  const { metadata, ...rest } = buildPlan({
    commands: [{ k0supdate: buildUpdate({ version, targets: { workers } }) }],
  });
  await admin.create(plans, { ...rest, metadata: { name: metadata.name } });
  onTestFinished(async () => await admin.delete(plans, metadata.name));
}

async function policy(spec: object): Promise<void> {
  const object = {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'both' },
  };
  await apply(JSON.stringify({ ...object, spec }));
  onTestFinished(async () => void (await kubectlAs('admin', ['delete', 'upgradepolicy', 'both'])));
}

/** Reports the end of the update as the agent of the node would. */
async function completes(name: string): Promise<void> {
  await vi.waitFor(async () => {
    const node = await admin.get(nodes, name);
    const signal = decodeSignal(node.metadata.annotations);
    // A completed signal belongs to the previous plan. The signal of the next plan is not written yet.
    if (!signal || signal.status?.status === 'Completed') throw new Error(`${name} has no signal`);
    const status = { status: 'Completed', timestamp: rfc3339(Date.now()) };
    await admin.replace(nodes, annotated(node, encodeSignal({ ...signal, status })));
  }, PATIENCE);
}

async function cattlePlan(name: string): Promise<CattlePlan> {
  return await admin.get(cattlePlans, name, { namespace: NAMESPACE });
}

const isDone = async (name: string): Promise<void> =>
  await vi.waitFor(
    async () => expect(conditionOf(await cattlePlan(name), 'Complete').status).toBe('True'),
    PATIENCE,
  );
const k0sIs = async (state: string): Promise<void> =>
  await vi.waitFor(
    async () => expect((await admin.get(plans, 'autopilot')).status?.state).toBe(state),
    PATIENCE,
  );

async function waitsWith(plan: string, words: RegExp): Promise<void> {
  const flags = ['--plan', plan, '--kubeconfig', await kubeconfigFor('viewer')];
  await vi.waitFor(
    async () => expect((await runRefit('status', ...flags)).stdout.join('\n')).toMatch(words),
    PATIENCE,
  );
}

/**
 * Returns a function that returns the greatest number of nodes that worked at the same time. The resourceVersions of
 * Nodes and Jobs give the order of the changes. The watches end with `abort`.
 */
async function followWork(abort: AbortSignal): Promise<() => number> {
  const steps: { readonly version: string; readonly who: string; readonly works: boolean }[] = [];
  const note = (
    { metadata: { resourceVersion: version = '' } }: KubeObject,
    who: string,
    works: boolean,
  ) => void steps.push({ version, who, works });
  const noteNode = (node: Node) =>
    note(node, `k0s ${node.metadata.name}`, signallerOf(node) !== undefined);
  const noteJob = (job: Job) => note(job, `Job ${job.metadata.name}`, !holds(job, 'Complete'));
  const byNodes = createInformer<Node>(admin, nodes, { labelSelector: 'pool=both' });
  const byJobs = createInformer<Job>(admin, jobs, { namespace: NAMESPACE });
  void Promise.all([byNodes.run(abort), byJobs.run(abort)]);
  await Promise.all([byNodes.whenSynced(abort), byJobs.whenSynced(abort)]);
  byNodes.addHandler({ added: noteNode, updated: noteNode });
  byJobs.addHandler({ added: noteJob, updated: noteJob });
  return () => {
    const working = new Set<string>();
    const counts = steps
      .toSorted((a, b) => compareResourceVersions(a.version, b.version))
      .map(({ who, works }) => {
        if (works) working.add(who);
        else working.delete(who);
        return working.size;
      });
    return Math.max(...counts);
  };
}

/**
 * Collects the nodes that both dialects claimed or signalled at the same time (`both`), and all nodes on which a
 * dialect worked (`worked`). Resolves when the watch has delivered the existing Nodes.
 */
async function followNodes(
  abort: AbortSignal,
): Promise<{ readonly both: string[]; readonly worked: Set<string> }> {
  const informer = createInformer<Node>(admin, nodes, { labelSelector: 'pool=both' });
  const seen = { both: [] as string[], worked: new Set<string>() };
  const note = (node: Node): void => {
    const claim = claimOn(node);
    const signaller = signallerOf(node);
    if (claim !== undefined && signaller !== undefined) seen.both.push(node.metadata.name);
    if (claim !== undefined) seen.worked.add(`cattle ${node.metadata.name}`);
    if (signaller !== undefined) seen.worked.add(`k0s ${node.metadata.name}`);
  };
  void informer.run(abort);
  await informer.whenSynced(abort);
  informer.addHandler({ added: note, updated: note, deleted: () => undefined });
  return seen;
}

test('with one budget, a k0s Plan and a Rancher Plan each wait for the node of the other and say so', async () => {
  await policy({ maxUnavailable: 1, virtualNodes: 'Count' });
  await kubectlAs('admin', ['taint', 'node', 'both-1', 'example.com/held=yes:NoSchedule']);
  const only = { ...HERE, nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'both-1' } } };
  await apply(JSON.stringify(planOf('first', only)));
  await vi.waitFor(
    async () => expect((await cattlePlan('first')).status?.applying).toEqual(['both-1']),
    PATIENCE,
  );
  await createK0sPlan(['both-2']);
  await waitsWith(
    'autopilot/autopilot',
    /1 of \d+ nodes is not Ready, unschedulable or at work \(both-1\)/,
  );
  expect(decodeSignal((await admin.get(nodes, 'both-2')).metadata.annotations)).toBeUndefined();
  await kubectlAs('admin', ['taint', 'node', 'both-1', 'example.com/held-']);
  await isDone('first');
  await vi.waitFor(
    async () => expect(signallerOf(await admin.get(nodes, 'both-2'))).toBe('id1'),
    PATIENCE,
  );
  await apply(JSON.stringify(planOf('second', only)));
  await waitsWith(
    `cattle/${NAMESPACE}/second`,
    /nodes (?:is|are) not Ready, unschedulable or at work \(both-2\)/,
  );
  // If the watch of the controller was late, the controller has recorded the node in `applying`. The controller removes
  // the node from `applying` after its own claim, because the claim shows it all earlier changes.
  await vi.waitFor(
    async () => expect((await cattlePlan('second')).status?.applying).toBeUndefined(),
    PATIENCE,
  );
  const labelSelector = 'upgrade.cattle.io/plan=second';
  expect((await admin.list(jobs, { namespace: NAMESPACE, labelSelector })).items).toEqual([]);
  await completes('both-2');
  await k0sIs('Completed');
  await isDone('second');
});

test.each([0, 60, 150])(
  'a k0s Plan that comes %i ms after a Rancher Plan shares its budget of one node',
  async (laterMs) => {
    await policy({ maxUnavailable: 1, virtualNodes: 'Count' });
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const most = await followWork(stop.signal);
    const name = `after-${laterMs}`;
    const created = admin.create(cattlePlans, planOf(name, { ...HERE, version: `v1-${laterMs}` }));
    await sleep(systemClock, laterMs);
    await Promise.all([created, createK0sPlan(NODES)]);
    await Promise.all([...NODES.map(completes), isDone(name)]);
    await k0sIs('Completed');
    expect(most()).toBe(1);
    for (const each of NODES)
      await vi.waitFor(
        async () => expect(claimOn(await admin.get(nodes, each))).toBeUndefined(),
        PATIENCE,
      );
  },
);

test('a k0s Plan and a Rancher Plan never work on the same node at the same time', async () => {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const seen = await followNodes(stop.signal);
  await Promise.all([createK0sPlan(NODES), apply(JSON.stringify(planOf('together', HERE)))]);
  await Promise.all([...NODES.map(completes), isDone('together')]);
  await k0sIs('Completed');
  expect(seen.both).toEqual([]);
  expect([...seen.worked].toSorted()).toEqual(
    NODES.flatMap((name) => [`cattle ${name}`, `k0s ${name}`]).toSorted(),
  );
  for (const name of NODES) expect(claimOn(await admin.get(nodes, name))).toBeUndefined();
});

/**
 * Tests that an invalid Plan changes no node, and that the reason is reported exactly once in each place that people
 * read.
 */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { createControlNode, createNode } from '../../sandbox/cluster/objects.ts';
import { type K0sUpdate, type Plan, plans } from '../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  type Event,
  events,
  type KubeObject,
  nodes,
  type Resource,
} from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { controlNodes, SIGNAL_DATA_ANNOTATION } from '../../src/signal/names.ts';
import { buildPlan, buildUpdate, listed, selected } from '../support/builders/plans.ts';
import { auditedSince, endOfAudit } from './audit.ts';
import { installKinds, kubeconfigFor, kubectlAs, ON_SERVER } from './control-plane.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 150_000, interval: 150 };
const WORKERS = ['bad-input-w1', 'bad-input-w2'];

let admin: KubeClient;
let controller: RefitProcess;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await createControlNode(admin, 'bad-input-c1', '127.0.0.1');
  for (const name of WORKERS) await createNode(admin, name, { pool: 'bad-input' });
  controller = new RefitProcess(
    'controller',
    '--kubeconfig',
    await kubeconfigFor('controller'),
    '--lease-duration',
    '5s',
  );
  await vi.waitFor(
    () => expect(controller.stderr.join('\n')).toContain('"msg":"leading"'),
    PATIENCE,
  );
});

afterEach(async () => {
  for (const { metadata } of await listOf(plans)) await admin.delete(plans, metadata.name);
});

afterAll(async () => {
  await controller.stop('SIGTERM');
  await admin.delete(controlNodes, 'bad-input-c1');
  for (const name of WORKERS) await admin.delete(nodes, name);
  admin.close();
});

async function listOf(kind: Resource): Promise<KubeObject[]> {
  return (await admin.list(kind)).items;
}

/**
 * Returns the controller's writes after position `start` of the audit log, such as `update plans/status`. Leaves out
 * the writes to Leases and NodeRollouts.
 */
async function writesSince(start: number): Promise<string[]> {
  return (await auditedSince(start))
    .filter(
      ({ user, verb }) =>
        user.username === 'refit-controller' && !['get', 'list', 'watch'].includes(verb),
    )
    .map(({ verb, objectRef: { resource, subresource } = { resource: 'nothing' } }) =>
      [`${verb} ${resource}`, subresource].filter(Boolean).join('/'),
    )
    .filter((call) => !call.endsWith('leases') && !call.includes('noderollouts'));
}

async function applyPlan(plan: Plan): Promise<string> {
  const { uid: _, resourceVersion: __, creationTimestamp: ___, ...metadata } = plan.metadata;
  return (await kubectlAs('admin', ON_SERVER, JSON.stringify({ ...plan, metadata }))).stderr;
}

async function eventsOf({ metadata }: Plan): Promise<Event[]> {
  const fieldSelector = `involvedObject.kind=Plan,involvedObject.uid=${metadata.uid}`;
  return (await admin.list(events, { namespace: 'default', fieldSelector })).items;
}

/**
 * Returns the parts of the targets that the controller could change. The other parts of a Node change without the
 * controller.
 */
async function targets(): Promise<unknown[]> {
  const found = [...(await listOf(controlNodes)), ...(await listOf(nodes))];
  return found.map(({ kind, metadata: { name, labels, annotations } }) => ({
    kind,
    name,
    labels,
    annotations,
  }));
}

const good = buildUpdate({
  targets: { controllers: listed('bad-input-c1'), workers: selected('pool=bad-input') },
});
const planOf = (update: Partial<K0sUpdate>): Plan =>
  buildPlan({ commands: [{ k0supdate: { ...good, ...update } }] });
const workersOf = (workers: NonNullable<K0sUpdate['targets']['workers']>): Plan =>
  planOf({ targets: { controllers: listed('bad-input-c1'), workers } });
const platform = (url: string, sha256?: string): Plan =>
  planOf({ platforms: { 'linux-amd64': { url, ...(sha256 === undefined ? {} : { sha256 }) } } });
const AT = 'spec.commands[0].k0supdate';

const CASES: readonly (readonly [string, Plan, string])[] = [
  [
    'a Plan of another name',
    { ...planOf({}), metadata: { name: 'another' } },
    'metadata.name: "another" is not supported; use "autopilot"',
  ],
  [
    'an empty id',
    { ...planOf({}), spec: { ...planOf({}).spec, id: '' } },
    'spec.id: "" is empty; use for example 2026-11-20',
  ],
  [
    'a Plan with a label selector that does not parse is refused',
    workersOf(selected('pool in (')),
    `${AT}.targets.workers.discovery.selector.labels: "pool in (" is not a label selector ("pool in (" is not a label requirement); use for example pool=blue`,
  ],
  [
    'a Plan with a field selector that does not parse is refused',
    workersOf(selected('', 'metadata.name')),
    `${AT}.targets.workers.discovery.selector.fields: "metadata.name" is not a field selector ("metadata.name" is not a field requirement); use for example metadata.name=w1`,
  ],
  [
    'a platform with an empty URL',
    platform(''),
    `${AT}.platforms.linux-amd64.url: "" is not a URL with http or https; use for example https://example.com/k0s`,
  ],
  [
    'a Plan with concurrent 0 is refused',
    workersOf({ ...selected('pool=bad-input'), limits: { concurrent: 0 } }),
    `${AT}.targets.workers.limits.concurrent: 0 is less than 1; use 1 or more`,
  ],
  [
    'a version that is none',
    planOf({ version: 'latest' }),
    `${AT}.version: "latest" is not a version; use for example v1.36.3+k0s.0`,
  ],
  [
    'a duplicate in a static list',
    workersOf(listed('bad-input-w1', 'bad-input-w2', 'bad-input-w1')),
    `${AT}.targets.workers.discovery.static.nodes: "bad-input-w1" is listed twice; list each node once`,
  ],
  [
    'a sha256 of the wrong length',
    platform('https://example.com/k0s', 'abc123'),
    `${AT}.platforms.linux-amd64.sha256: "abc123" is not a SHA-256; use 64 hexadecimal digits, not 6`,
  ],
  [
    'two things wrong: one reason that names both',
    { ...planOf({ version: '' }), spec: { ...planOf({ version: '' }).spec, id: '' } },
    `spec.id: "" is empty; use for example 2026-11-20; ${AT}.version: "" is not a version; use for example v1.36.3+k0s.0`,
  ],
];

test.each(CASES)(
  '%s: one reason on the Plan, one Event, one line of the status, no node touched',
  async (_name, plan, message) => {
    const before = await targets();
    const start = await endOfAudit();
    expect(await applyPlan(plan)).toBe('');
    const read = async (): Promise<Plan> => await admin.get(plans, plan.metadata.name);
    await expect.poll(async () => (await read()).status?.state, PATIENCE).toBe('Warning');
    const refused = await read();
    expect(refused.status?.commands).toEqual([{ id: 0, state: 'Warning', description: message }]);
    await expect.poll(async () => (await eventsOf(refused)).length, PATIENCE).toBe(1);
    expect(await eventsOf(refused)).toMatchObject([
      { type: 'Warning', reason: 'InvalidPlan', message, count: 1 },
    ]);

    const status = await runRefit('status', '--kubeconfig', await kubeconfigFor('viewer'));
    expect({ code: status.code, stderr: status.stderr }).toEqual({ code: 0, stderr: [] });
    expect(status.stdout.filter((line) => line.includes(message))).toEqual([
      `  why     ${message}`,
    ]);

    expect(await targets()).toEqual(before);
    // The plan is written twice: its status, and its conditions, which are in an annotation.
    const writes = async (): Promise<string[]> =>
      (await writesSince(start)).toSorted((a, b) => a.localeCompare(b));
    await expect
      .poll(writes, PATIENCE)
      .toEqual(['create events', 'update plans', 'update plans/status']);
  },
);

test('a platform without any URL is refused by the API server, which names the field', async () => {
  const refusal = await applyPlan(planOf({ platforms: { 'linux-amd64': {} as { url: string } } }));
  expect(refusal).toContain(`${AT}.platforms.linux-amd64.url: Required value`);
  expect(await listOf(plans)).toEqual([]);
});

test('a valid plan touches its first target: the checks above would find it', async () => {
  const before = await targets();
  const start = await endOfAudit();
  expect(await applyPlan(planOf({}))).toBe('');
  const signal = async (): Promise<unknown> =>
    (await admin.get(controlNodes, 'bad-input-c1')).metadata.annotations?.[SIGNAL_DATA_ANNOTATION];
  await expect.poll(signal, PATIENCE).toBeDefined();
  expect(await targets()).not.toEqual(before);
  expect(await writesSince(start)).toContain('update controlnodes');
});

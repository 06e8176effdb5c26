/** Tests the cattle dialect on a real control plane: Plans from `kubectl apply` to their conditions, watched from outside. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import type { PlanView } from '../../src/cli/status/view.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { jobOf } from '../../src/dialects/cattle/plan/job.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { events, type Job, jobs, nodes, pods, secrets } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { CUSTOM_KINDS } from '../../tools/crds/registry.ts';
import { secretReader } from '../support/builders/secret-reader.ts';
import { followUnfinished, type Unfinished } from '../support/expectations/unfinished.ts';
import {
  conditionOf,
  installKinds,
  NAMESPACE,
  nodeOf,
  planOf,
  startController,
  timeOf,
} from './cattle-rig.ts';
import { apply as applyManifest, kubeconfigFor, kubectlAs, ON_SERVER } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

/** The hash of the published version and service account. */
const HASH = '0e4e3f4e3f8b1e811d841099cb49e4712b93833bee0604115b9a141c';
const SERVERS = [
  'turing-node-1',
  ...Array.from({ length: 10 }, (_, index) => `server-${index + 1}`),
];
const CORDONED = ['server-3', 'server-7'];
const DISABLED = 'server-10';
const FRAGILE = ['fragile-1', 'fragile-2'];
const CONCURRENCY = 3;
const CORDON = { spec: { unschedulable: true } };
const PATIENCE = { timeout: 150_000, interval: 200 };

let directory = '';
let admin: KubeClient;
let controller: Process;
let channel: Server;
const asked: string[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-cattle-'));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  for (const name of SERVERS) await admin.create(nodes, nodeOf(name, { pool: 'servers' }));
  for (const name of FRAGILE) await admin.create(nodes, nodeOf(name, { pool: 'fragile' }));
  await kubectlAs('admin', [
    'label',
    'node',
    DISABLED,
    'plan.upgrade.cattle.io/server-plan=disabled',
  ]);
  await kubectlAs('admin', ['cordon', ...CORDONED]);
  await installKinds();
  channel = createServer((request, response) => {
    const { 'x-suc-latest-version': latest = 'first', 'x-suc-cluster-id': cluster } =
      request.headers;
    asked.push(`${request.url} ${String(latest)} ${String(cluster)}`);
    const code = Number(request.url?.slice(1));
    if (code > 0) response.writeHead(code).end();
    else response.writeHead(302, { location: '/releases/v2.0.0%2Bchannel1' }).end();
  });
  await new Promise<void>((resolve) => channel.listen(0, '127.0.0.1', resolve));
  controller = await startController(directory, { SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: '0' });
});

afterAll(async () => {
  await controller.stop();
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', '--all', '-n', NAMESPACE]);
  await vi.waitFor(
    async () => expect((await admin.list(jobs, { namespace: NAMESPACE })).items).toEqual([]),
    PATIENCE,
  );
  for (const name of [...SERVERS, ...FRAGILE]) await admin.delete(nodes, name);
  channel.closeAllConnections();
  channel.close();
  admin.close();
  await rm(directory, { recursive: true });
});

async function apply(plan: CattlePlan): Promise<void> {
  const { stderr } = await kubectlAs('admin', ON_SERVER, JSON.stringify(plan));
  expect(stderr).toBe('');
}

async function patch(name: string, change: object): Promise<void> {
  await admin.patch(cattlePlans, name, change, { namespace: NAMESPACE, type: 'merge' });
}

async function plan(name: string): Promise<CattlePlan> {
  return await admin.get(cattlePlans, name, { namespace: NAMESPACE });
}

/** Resolves with the plan when the condition has that status and reason. */
async function until(
  name: string,
  type: string,
  status: string,
  reason: string,
): Promise<CattlePlan> {
  return await vi.waitFor(async () => {
    const found = await plan(name);
    const { status: is, reason: why } = conditionOf(found, type);
    expect({ type, status: is, reason: why }).toEqual({ type, status, reason });
    return found;
  }, PATIENCE);
}

async function jobsOf(planName: string): Promise<Job[]> {
  const labelSelector = `upgrade.cattle.io/plan=${planName}`;
  return (await admin.list(jobs, { namespace: NAMESPACE, labelSelector })).items;
}

async function messagesOf(name: string, reason: string): Promise<string> {
  const { items } = await admin.list(events, {
    fieldSelector: `involvedObject.name=${name},reason=${reason}`,
  });
  return items.map(({ message }) => message).join(' ');
}

describe('eleven nodes, three at a time', () => {
  const stop = new AbortController();
  let seen: Unfinished;
  let pieces: Unfinished;
  let finished: CattlePlan;

  beforeAll(async () => {
    seen = await followUnfinished(admin, jobs, NAMESPACE, stop.signal);
    pieces = await followUnfinished(admin, pods, NAMESPACE, stop.signal);
    const spec = { concurrency: CONCURRENCY, version: 'v1.27.6+k3s1', cordon: true };
    await apply(
      planOf('server-plan', { ...spec, postCompleteLabels: { done: '$(LATEST_VERSION)' } }),
    );
    finished = await until('server-plan', 'Complete', 'True', 'Complete');
    stop.abort();
  });

  test('the status is what scripts for the original expect', () => {
    expect(finished.status).toMatchObject({ latestVersion: 'v1.27.6-k3s1', latestHash: HASH });
    expect(finished.status?.applying).toBeUndefined();
    expect(
      finished.status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    ).toEqual([
      'Complete True Complete',
      'Validated True PlanIsValid',
      'LatestResolved True Version',
    ]);
  });

  test('its Events have the reasons of the original, at most one for each node', async () => {
    await vi.waitFor(async () => {
      const about = [
        '--field-selector',
        'involvedObject.name=server-plan',
        '-o',
        'jsonpath={.items[*].reason}',
      ];
      const reasons = (
        await kubectlAs('admin', ['get', 'events', '-n', NAMESPACE, ...about])
      ).stdout.split(' ');
      expect(new Set(reasons)).toEqual(
        new Set(['Validated', 'Resolved', 'SyncJob', 'JobComplete', 'Complete']),
      );
      for (const own of new Set(reasons))
        expect(reasons.filter((reason) => reason === own).length).toBeLessThan(SERVERS.length);
    }, PATIENCE);
  });

  test('at most three Jobs run, and three at some time', () => {
    expect(seen.most()).toBe(CONCURRENCY);
    // kwok may finish a pod before the next one is created.
    expect(pieces.most()).toBeGreaterThan(0);
    expect(pieces.most()).toBeLessThanOrEqual(CONCURRENCY);
  });

  test('a Job has the name and the labels of the original', async () => {
    const job = (await jobsOf('server-plan')).find(
      ({ metadata }) => metadata.labels?.['upgrade.cattle.io/node'] === 'turing-node-1',
    );
    expect(job?.metadata.name).toBe(
      'apply-server-plan-on-turing-node-1-with-0e4e3f4e3f8b1e811-0c1d4',
    );
    expect(job?.metadata.labels).toMatchObject({
      'upgrade.cattle.io/controller': 'system-upgrade-controller',
      'upgrade.cattle.io/exclusive': 'false',
      'upgrade.cattle.io/plan': 'server-plan',
      'upgrade.cattle.io/version': 'v1.27.6-k3s1',
      'plan.upgrade.cattle.io/server-plan': HASH,
    });
    expect(job?.spec).toMatchObject({
      template: {
        spec: {
          initContainers: [{ image: 'rancher/kubectl:v1.30.3' }],
          containers: [{ image: 'example.com/upgrade:v1.27.6-k3s1' }],
        },
      },
    });
  });

  test('each node got one Job, except the excluded one', async () => {
    const touched = (await jobsOf('server-plan')).map(
      ({ metadata }) => metadata.labels?.['upgrade.cattle.io/node'] ?? '',
    );
    expect(touched.toSorted()).toEqual(SERVERS.filter((name) => name !== DISABLED).toSorted());
    expect(seen.created()).toBe(SERVERS.length - 1);
  });

  test('each finished node is labelled, and cordoned only where somebody else had cordoned it', async () => {
    const found = await Promise.all(SERVERS.map(async (name) => await admin.get(nodes, name)));
    for (const { metadata, spec } of found) {
      const isLeftOut = metadata.name === DISABLED;
      expect(metadata.labels?.['plan.upgrade.cattle.io/server-plan']).toBe(
        isLeftOut ? 'disabled' : HASH,
      );
      expect(metadata.labels?.['done']).toBe(isLeftOut ? undefined : 'v1.27.6-k3s1');
      expect(spec?.unschedulable ?? false).toBe(CORDONED.includes(metadata.name));
      expect(
        Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith('cordon.refit')),
      ).toEqual([]);
    }
  });

  test('a new node starts the plan again', async () => {
    await admin.create(nodes, nodeOf('late', { pool: 'servers' }));
    await vi.waitFor(async () => {
      const { metadata } = await admin.get(nodes, 'late');
      expect(metadata.labels?.['plan.upgrade.cattle.io/server-plan']).toBe(HASH);
    }, PATIENCE);
    await until('server-plan', 'Complete', 'True', 'Complete');
    await admin.delete(nodes, 'late');
  });
});

test("conflicting drain options are refused with the original's message until one of them is removed", async () => {
  const drain = { deleteLocalData: true, deleteEmptydirData: true };
  const spec = { nodeSelector: { matchLabels: { pool: 'nobody' } }, version: 'v1' };
  await apply(planOf('drains', { ...spec, drain }));
  const refused = await until('drains', 'Validated', 'False', 'Error');
  const message = 'spec.drain cannot specify both deleteEmptydirData and deleteLocalData';
  expect(conditionOf(refused, 'Validated').message).toBe(message);
  expect(conditionOf(refused, 'Complete')).toMatchObject({
    status: 'False',
    reason: 'NotReady',
    message: 'plan is not valid and resolved',
  });
  expect(await jobsOf('drains')).toEqual([]);
  await patch('drains', { spec: { drain: { deleteLocalData: null } } });
  await until('drains', 'Validated', 'True', 'PlanIsValid');
  await until('drains', 'Complete', 'True', 'Complete');
});

describe('a Job that fails', () => {
  const fragile = { nodeSelector: { matchLabels: { pool: 'fragile' } }, version: 'v1' };

  test('is reported with its reason and keeps the slot: no other node starts', async () => {
    await apply(planOf('fragile', fragile, { 'example.com/outcome': 'failure' }));
    const failed = await until('fragile', 'Complete', 'False', 'JobFailed');
    const [job, ...others] = await jobsOf('fragile');
    expect(others).toEqual([]);
    const node = job?.metadata.labels?.['upgrade.cattle.io/node'];
    const why = 'BackoffLimitExceeded: Job has reached the specified backoff limit';
    const message = `Job ${NAMESPACE}/${job?.metadata.name} failed on Node ${node}: ${why}`;
    expect(conditionOf(failed, 'Complete').message).toBe(message);
    expect(failed.status?.applying).toEqual([node]);

    // Wake the controller: here with a label on each node.
    await kubectlAs('admin', ['label', 'node', ...FRAGILE, 'example.com/touched=yes']);
    await apply(
      planOf('after-fragile', { nodeSelector: { matchLabels: { pool: 'nobody' } }, version: 'v1' }),
    );
    await until('after-fragile', 'Complete', 'True', 'Complete');
    expect((await jobsOf('fragile')).map(({ metadata }) => metadata.uid)).toEqual([
      job?.metadata.uid,
    ]);
    expect(conditionOf(await plan('fragile'), 'Complete').reason).toBe('JobFailed');
  });

  test('is tried again after its deletion, after a retry, and after an edit of its template', async () => {
    const name = 'again';
    await apply(planOf(name, fragile, { 'example.com/outcome': 'failure' }));
    const attempts = new Set<string>();
    const nextFailure = async (): Promise<Job> =>
      await vi.waitFor(async () => {
        const [job, ...others] = await jobsOf(name);
        const { uid = '' } = job?.metadata ?? {};
        expect({ others, isNew: !attempts.has(uid) }).toEqual({ others: [], isNew: true });
        const times =
          conditionOf(await plan(name), 'RefitFailedNodes').message?.match(/\d{4}\S+Z/) ?? [];
        expect(Date.parse(times[0] ?? '')).toBeGreaterThanOrEqual(
          timeOf(job?.metadata.creationTimestamp),
        );
        attempts.add(uid);
        return job as Job;
      }, PATIENCE);
    const first = await nextFailure();
    const node = first.metadata.labels?.['upgrade.cattle.io/node'] ?? '';
    await admin.delete(jobs, first.metadata.name, {
      namespace: NAMESPACE,
      propagationPolicy: 'Background',
    });
    await nextFailure();
    const flags = [
      '--plan',
      `cattle/${NAMESPACE}/${name}`,
      '--kubeconfig',
      await kubeconfigFor('operator'),
    ];
    expect(await runRefit('retry', node, ...flags)).toMatchObject({ code: 0, stderr: [] });
    const { metadata } = await nextFailure();
    expect(Object.keys((await plan(name)).metadata.annotations ?? {})).toContain(
      'refit.upgrade.cattle.io/retry',
    );
    expect(metadata.labels?.['upgrade.cattle.io/node']).toBe(node);
    await patch(name, { metadata: { labels: { 'example.com/outcome': null } } });
    await until(name, 'Complete', 'True', 'Complete');
    expect((await jobsOf(name)).map((job) => attempts.has(job.metadata.uid ?? ''))).toEqual([
      false,
      false,
    ]);
  });

  test('does not end the plan: a new version starts again', async () => {
    await patch('fragile', {
      metadata: { labels: { 'example.com/outcome': null } },
      spec: { version: 'v2' },
    });
    const done = await until('fragile', 'Complete', 'True', 'Complete');
    expect(done.status?.conditions?.map(({ type }) => type)).toEqual([
      'Complete',
      'Validated',
      'LatestResolved',
    ]);
  });
});

test("a Job that the API server refuses is told in the server's words, holds no slot, and is made after an edit", async () => {
  const volumes = [{ name: 'own', source: '/a', destination: '/a' }];
  const spec = { nodeSelector: { matchLabels: { pool: 'fragile' } }, version: 'v1' };
  await apply(planOf('refused', { ...spec, prepare: { image: 'example.com/prepare', volumes } }));
  const all = `${FRAGILE.map((name) => `${name} refused at \\S+`).join(', ')}; generation 1`;
  const refused = await vi.waitFor(async () => {
    const found = await plan('refused');
    expect(conditionOf(found, 'RefitFailedNodes').message).toMatch(new RegExp(`^${all}$`));
    return found;
  }, PATIENCE);
  const words = 'spec.template.spec.initContainers[0].volumeMounts[2].name: Not found: "own"';
  expect(conditionOf(refused, 'Complete')).toMatchObject({
    status: 'False',
    reason: 'ValidationFailed',
  });
  expect(conditionOf(refused, 'Complete').message).toContain(words);
  expect(refused.status?.applying).toBeUndefined();
  await vi.waitFor(
    async () => expect(await messagesOf('refused', 'ValidationFailed')).toContain(words),
    PATIENCE,
  );
  await patch('refused', { spec: { prepare: null } });
  await until('refused', 'Complete', 'True', 'Complete');
  expect(await jobsOf('refused')).toHaveLength(FRAGILE.length);
});

test('a pod that cannot start says why', async () => {
  const label = { 'kubernetes.io/hostname': 'server-1' };
  // kwok plays pods of its own nodes only: this one stays unscheduled.
  const spec = {
    version: 'v1',
    nodeSelector: { matchLabels: label },
    upgrade: { image: 'example.com/stall' },
  };
  await kubectlAs('admin', ['taint', 'node', 'server-1', 'example.com/busy=yes:NoSchedule']);
  await apply(planOf('stalled', spec));
  const words = /server-1 is at Starting: its pod has no place: 0\/\d+ nodes are available/;
  await vi.waitFor(
    async () => expect(await messagesOf('server-1', 'Stalled')).toMatch(words),
    PATIENCE,
  );
  const flags = [
    '--plan',
    `cattle/${NAMESPACE}/stalled`,
    '--kubeconfig',
    await kubeconfigFor('admin'),
  ];
  expect((await runRefit('status', ...flags)).stdout.join('\n')).toContain('its pod has no place');
  await until('stalled', 'RefitStalled', 'True', 'Stalled');
  await kubectlAs('admin', ['taint', 'node', 'server-1', 'example.com/busy-']);
  await until('stalled', 'Complete', 'True', 'Complete');
});

test('a channel gives the version by its redirect', async () => {
  const { port } = channel.address() as AddressInfo;
  const nobody = { nodeSelector: { matchLabels: { pool: 'nobody' } } };
  await apply(planOf('channel', { ...nobody, channel: `http://127.0.0.1:${port}/stable` }));
  const resolved = await until('channel', 'Complete', 'True', 'Complete');
  expect(conditionOf(resolved, 'LatestResolved')).toMatchObject({
    status: 'True',
    reason: 'Channel',
  });
  expect(resolved.status?.latestVersion).toBe('v2.0.0-channel1');
  const { stdout: cluster } = await kubectlAs('admin', [
    'get',
    'ns',
    'kube-system',
    '-o',
    'jsonpath={.metadata.uid}',
  ]);
  expect(asked).toEqual([`/stable first ${cluster}`]);
});

test.each([
  ['http', '404', /404/],
  ['http', '503', /503/],
  ['https', 'stable', /./],
])('a channel without a version says why: %s, %s', async (scheme, path, words) => {
  const { port } = channel.address() as AddressInfo;
  const name = `broken-${scheme}-${path}`;
  await apply(planOf(name, { channel: `${scheme}://127.0.0.1:${port}/${path}` }));
  const failed = await until(name, 'LatestResolved', 'False', 'Error');
  expect(conditionOf(failed, 'LatestResolved').message).toMatch(words);
  expect(conditionOf(failed, 'Complete').reason).toBe('NotReady');
  expect(failed.status?.latestVersion).toBeUndefined();
});

test('neither channel nor version', async () => {
  await apply(planOf('neither', {}));
  const failed = await until('neither', 'LatestResolved', 'False', 'Error');
  expect(conditionOf(failed, 'LatestResolved').message).toBe(
    'cannot resolve plan: missing channel and version',
  );
  expect([failed.status?.latestVersion, failed.status?.latestHash]).toEqual([undefined, undefined]);
});

test('a Secret that no role names holds up its own plan only', async () => {
  const metadata = { name: 'unnamed', namespace: NAMESPACE };
  await admin.create(secrets, { metadata });
  const pool = { nodeSelector: { matchLabels: { pool: 'nobody' } }, version: 'v1' };
  await apply(planOf('unnamed', { ...pool, secrets: [{ name: 'unnamed', path: 'x' }] }));
  await apply(planOf('beside', pool));
  const refused = await until('unnamed', 'Validated', 'False', 'Error');
  expect(conditionOf(refused, 'Validated').message).toBe('secrets "unnamed" not found');
  await until('beside', 'Complete', 'True', 'Complete');
  await admin.delete(secrets, 'unnamed', { namespace: NAMESPACE });
});

test('the plan waits for a Secret of its hash, and takes a new version of it', async () => {
  await applyManifest(
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: secretReader(NAMESPACE, 'bionic') }),
  );
  const named = { secrets: [{ name: 'bionic', path: 'bionic' }], version: 'bionic' };
  await apply(planOf('bionic', { nodeSelector: { matchLabels: { pool: 'nobody' } }, ...named }));
  const refused = await until('bionic', 'Validated', 'False', 'Error');
  expect(conditionOf(refused, 'Validated').message).toBe('secrets "bionic" not found');
  const secret = { metadata: { name: 'bionic', namespace: NAMESPACE }, data: { curl: 'Ny41OC4w' } };
  await admin.create(secrets, secret);
  const done = await until('bionic', 'Complete', 'True', 'Complete');
  const found = await admin.get(secrets, 'bionic', { namespace: NAMESPACE });
  await admin.replace(secrets, { ...found, data: { curl: 'Ny42OS4w' } });
  await vi.waitFor(async () => {
    const plan = await admin.get(cattlePlans, 'bionic', { namespace: NAMESPACE });
    expect(plan.status?.latestHash).not.toBe(done.status?.latestHash);
  }, PATIENCE);
  await admin.delete(secrets, 'bionic', { namespace: NAMESPACE });
  expect(done.status?.latestHash).toBe('1ac8a41bfd33d8a67c53f18cc8bd0d6b911340a696231125cc7d931a');
});

describe('a window', () => {
  const one = {
    nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'server-1' } },
    version: 'v1',
  };
  const day = (fromToday: number): string =>
    new Date(Date.now() + fromToday * 86_400_000)
      .toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' })
      .toLowerCase();

  test("holds a Plan with the original's message until one opens", async () => {
    await apply(
      planOf('windowed', {
        ...one,
        window: { days: [day(3)], startTime: '9:00', endTime: '10:00' },
      }),
    );
    const held = await until('windowed', 'Complete', 'False', 'Waiting');
    expect(conditionOf(held, 'Complete').message).toBe(
      'current time is not within configured window',
    );
    expect(conditionOf(held, 'Validated').status).toBe('True');
    expect(await jobsOf('windowed')).toEqual([]);
    const days = [0, 1, 2, 3, 4, 5, 6].map(day);
    await patch('windowed', {
      spec: { window: { days, startTime: '00:00:00', endTime: '23:59:59' } },
    });
    await until('windowed', 'Complete', 'True', 'Complete');
    expect(await jobsOf('windowed')).toHaveLength(1);
  });

  test('that cannot be read is reported', async () => {
    await apply(
      planOf('unreadable', {
        ...one,
        window: { days: [day(0)], startTime: '24:00', endTime: '10:00' },
      }),
    );
    const refused = await until('unreadable', 'Validated', 'False', 'Error');
    expect(conditionOf(refused, 'Validated').message).toBe(
      'spec.window is invalid, startTime "24:00" is not a time of day; use for example 22:00',
    );
  });
});

test('a node keeps its slot after its Job for as long as the Plan says, and runs pods meanwhile', async () => {
  const label = 'plan.upgrade.cattle.io/delayed';
  const stop = new AbortController();
  const seen: string[] = [];
  const informer = createInformer(admin, nodes);
  informer.addHandler({
    updated({ metadata, spec }) {
      if (!FRAGILE.includes(metadata.name)) return;
      const uncordoned = metadata.labels?.[label] ? 'done' : 'open';
      seen.push(`${metadata.name} ${spec?.unschedulable ? 'cordoned' : uncordoned}`);
    },
  });
  void informer.run(stop.signal);
  await informer.whenSynced(stop.signal);
  // Stands in for the kubectl of the Jobs, whose pods kwok plays.
  const made = createInformer(admin, jobs, {
    namespace: NAMESPACE,
    labelSelector: 'upgrade.cattle.io/plan=delayed',
  });
  made.addHandler({
    added: ({ metadata }) =>
      void admin.patch(nodes, metadata.labels?.['upgrade.cattle.io/node'] ?? '', CORDON, {
        type: 'merge',
      }),
  });
  void made.run(stop.signal);
  const spec = { nodeSelector: { matchLabels: { pool: 'fragile' } }, version: 'v3', cordon: true };
  await apply(planOf('delayed', { ...spec, postCompleteDelay: '3s' }));
  await until('delayed', 'Complete', 'True', 'Complete');
  // The watch may be behind.
  await vi.waitFor(
    () => expect(seen).toEqual(expect.arrayContaining(FRAGILE.map((name) => `${name} done`))),
    PATIENCE,
  );
  stop.abort();
  const rests = expect.stringContaining('rests for 3 s');
  await vi.waitFor(
    async () => expect(await messagesOf('delayed', 'JobCompleteWaiting')).toEqual(rests),
    PATIENCE,
  );
  const ended = (await jobsOf('delayed')).toSorted(
    (a, b) => timeOf(a.metadata.creationTimestamp) - timeOf(b.metadata.creationTimestamp),
  );
  expect(ended).toHaveLength(FRAGILE.length);
  for (const [index, { metadata }] of ended.slice(1).entries())
    expect(
      timeOf(metadata.creationTimestamp) - timeOf(ended[index]?.status?.completionTime),
    ).toBeGreaterThanOrEqual(3000);
  for (const name of FRAGILE) {
    const own = seen
      .filter((each) => each.startsWith(`${name} `))
      .map((each) => each.split(' ')[1]);
    const changes = own.filter((each, index) => each !== own[index - 1]);
    expect(changes.slice(changes.indexOf('cordoned'))).toEqual(['cordoned', 'open', 'done']);
  }
});

test('a policy holds a Plan and reports that', async () => {
  const policy = {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'cattle-calm' },
    spec: { plans: [{ dialect: 'cattle', namespace: NAMESPACE, name: 'calm' }], paused: true },
  };
  await applyManifest(JSON.stringify(policy));
  await apply(
    planOf('calm', {
      nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'server-2' } },
      version: 'v1',
    }),
  );
  await vi.waitFor(
    async () => expect(conditionOf(await plan('calm'), 'RefitWaits').status).toBe('True'),
    PATIENCE,
  );
  const covers = ['get', 'upgradepolicy', 'cattle-calm', '-o', 'jsonpath={.status.covers}'];
  const covered = `["cattle/${NAMESPACE}/calm"]`;
  await vi.waitFor(
    async () => expect((await kubectlAs('admin', covers)).stdout).toBe(covered),
    PATIENCE,
  );
  expect(await jobsOf('calm')).toEqual([]);
  await kubectlAs('admin', ['delete', 'upgradepolicy', 'cattle-calm']);
  await until('calm', 'Complete', 'True', 'Complete');
});

test('a Job that the original left paused is adopted and resumed', async () => {
  await apply(
    planOf('taken', { nodeSelector: { matchLabels: { pool: 'nobody' } }, version: 'v1' }),
  );
  const { latestHash: hash = '' } =
    (await until('taken', 'Complete', 'True', 'Complete')).status ?? {};
  const rendering = {
    plan: await plan('taken'),
    node: await admin.get(nodes, 'server-1'),
    version: 'v1',
    hash,
  };
  const config = {
    name: 'system-upgrade-controller',
    namespace: NAMESPACE,
    job: DEFAULT_JOB_SETTINGS,
  };
  const job = jobOf(config, { ...rendering, settings: config.job });
  const { metadata } = await admin.create(jobs, { ...job, spec: { ...job.spec, parallelism: 0 } });
  await patch('taken', {
    spec: { nodeSelector: { matchLabels: { pool: null, 'kubernetes.io/hostname': 'server-1' } } },
  });
  await vi.waitFor(async () => {
    const [only, ...others] = await jobsOf('taken');
    expect([only?.metadata.uid, only?.status?.succeeded, others]).toEqual([metadata.uid, 1, []]);
  }, PATIENCE);
  await until('taken', 'Complete', 'True', 'Complete');
});

test('refit status shows Plans of all namespaces to the viewer', async () => {
  const flags = ['-o', 'json', '--kubeconfig', await kubeconfigFor('viewer')];
  const { code, stdout, stderr } = await runRefit('status', ...flags);
  expect({ code, stderr }).toEqual({ code: 0, stderr: [] });
  const { plans } = JSON.parse(stdout.join('')) as { plans: PlanView[] };
  const told = plans.find(({ name }) => name === 'server-plan');
  expect(told).toMatchObject({ dialect: 'cattle', phase: 'done', id: HASH });
  const names = SERVERS.filter((name) => name !== DISABLED).toSorted();
  expect(told?.stages[0]?.targets.map(({ name }) => name).toSorted()).toEqual(names);
});

test('the columns are those of the original', async () => {
  const wide = ['get', 'plans.upgrade.cattle.io', 'server-plan', '-n', NAMESPACE, '-o', 'wide'];
  const { stdout } = await kubectlAs('viewer', wide);
  const kind = CUSTOM_KINDS.find(({ resource }) => resource === cattlePlans);
  const names = kind?.columns.map(({ name }) => name.toUpperCase()) ?? [];
  expect(stdout.split('\n')[0]?.split(/\s+/)).toEqual(['NAME', ...names]);
});

/** Tests Plans of Rancher on a real control plane, from `kubectl apply` until they have their conditions. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import type { PlanJson } from '../../src/cli/status/json-form.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { jobOf } from '../../src/dialects/cattle/plan/job.ts';
import { type Job, jobs, nodes, pods } from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { CUSTOM_KINDS } from '../../tools/crds/registry.ts';
import { followUnfinished, type Unfinished } from '../support/expectations/unfinished.ts';
import { conditionOf, NAMESPACE, nodeOf, planOf, timeOf } from './cattle-rig.ts';
import { CattleScene, PATIENCE } from './cattle-scene.ts';
import { apply as applyManifest, kubeconfigFor, kubectlAs } from './control-plane.ts';
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

let scene: CattleScene;
beforeAll(async () => {
  scene = await CattleScene.open({ servers: SERVERS, fragile: FRAGILE }, async () => {
    await kubectlAs('admin', [
      'label',
      'node',
      DISABLED,
      'plan.upgrade.cattle.io/server-plan=disabled',
    ]);
    await kubectlAs('admin', ['cordon', ...CORDONED]);
  });
});
afterAll(async () => await scene.close());

describe('eleven nodes, three at a time', () => {
  const stop = new AbortController();
  let seen: Unfinished;
  let pieces: Unfinished;
  let finished: CattlePlan;

  beforeAll(async () => {
    seen = await followUnfinished(scene.admin, jobs, NAMESPACE, stop.signal);
    pieces = await followUnfinished(scene.admin, pods, NAMESPACE, stop.signal);
    const spec = { concurrency: CONCURRENCY, version: 'v1.27.6+k3s1', cordon: true };
    await scene.apply(
      planOf('server-plan', { ...spec, postCompleteLabels: { done: '$(LATEST_VERSION)' } }),
    );
    finished = await scene.until('server-plan', 'Complete', 'True', 'Complete');
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

  test('with concurrency 3, three Jobs run at the same time, and never more', () => {
    expect(seen.most()).toBe(CONCURRENCY);
    // kwok may finish a pod before the next one is created.
    expect(pieces.most()).toBeGreaterThan(0);
    expect(pieces.most()).toBeLessThanOrEqual(CONCURRENCY);
  });

  test('a Job has the same name and labels as a Job of the original', async () => {
    const job = (await scene.jobsOf('server-plan')).find(
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

  test('each node gets exactly one Job, except a node with the label value disabled, which gets none', async () => {
    const touched = (await scene.jobsOf('server-plan')).map(
      ({ metadata }) => metadata.labels?.['upgrade.cattle.io/node'] ?? '',
    );
    expect(touched.toSorted()).toEqual(SERVERS.filter((name) => name !== DISABLED).toSorted());
    expect(seen.created()).toBe(SERVERS.length - 1);
  });

  test('each finished node is labelled, and is cordoned only if it was already cordoned before the Plan', async () => {
    const found = await Promise.all(
      SERVERS.map(async (name) => await scene.admin.get(nodes, name)),
    );
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
    await scene.admin.create(nodes, nodeOf('late', { pool: 'servers' }));
    await vi.waitFor(async () => {
      const { metadata } = await scene.admin.get(nodes, 'late');
      expect(metadata.labels?.['plan.upgrade.cattle.io/server-plan']).toBe(HASH);
    }, PATIENCE);
    await scene.until('server-plan', 'Complete', 'True', 'Complete');
    await scene.admin.delete(nodes, 'late');
  });
});

test("conflicting drain options are refused with the original's message until one of them is removed", async () => {
  const drain = { deleteLocalData: true, deleteEmptydirData: true };
  const spec = { nodeSelector: { matchLabels: { pool: 'nobody' } }, version: 'v1' };
  await scene.apply(planOf('drains', { ...spec, drain }));
  const refused = await scene.until('drains', 'Validated', 'False', 'Error');
  const message = 'spec.drain cannot specify both deleteEmptydirData and deleteLocalData';
  expect(conditionOf(refused, 'Validated').message).toBe(message);
  expect(conditionOf(refused, 'Complete')).toMatchObject({
    status: 'False',
    reason: 'NotReady',
    message: 'plan is not valid and resolved',
  });
  expect(await scene.jobsOf('drains')).toEqual([]);
  await scene.patch('drains', { spec: { drain: { deleteLocalData: null } } });
  await scene.until('drains', 'Validated', 'True', 'PlanIsValid');
  await scene.until('drains', 'Complete', 'True', 'Complete');
});

describe('a Job that fails', () => {
  const fragile = { nodeSelector: { matchLabels: { pool: 'fragile' } }, version: 'v1' };

  test('a failed Job is reported with its reason and keeps its slot, so no other node starts', async () => {
    await scene.apply(planOf('fragile', fragile, { 'example.com/outcome': 'failure' }));
    const failed = await scene.until('fragile', 'Complete', 'False', 'JobFailed');
    const [job, ...others] = await scene.jobsOf('fragile');
    expect(others).toEqual([]);
    const node = job?.metadata.labels?.['upgrade.cattle.io/node'];
    const why = 'BackoffLimitExceeded: Job has reached the specified backoff limit';
    const message = `Job ${NAMESPACE}/${job?.metadata.name} failed on Node ${node}: ${why}`;
    expect(conditionOf(failed, 'Complete').message).toBe(message);
    expect(failed.status?.applying).toEqual([node]);

    // Wakes the controller with a change of a label on each node.
    await kubectlAs('admin', ['label', 'node', ...FRAGILE, 'example.com/touched=yes']);
    await scene.apply(
      planOf('after-fragile', { nodeSelector: { matchLabels: { pool: 'nobody' } }, version: 'v1' }),
    );
    await scene.until('after-fragile', 'Complete', 'True', 'Complete');
    expect((await scene.jobsOf('fragile')).map(({ metadata }) => metadata.uid)).toEqual([
      job?.metadata.uid,
    ]);
    expect(conditionOf(await scene.plan('fragile'), 'Complete').reason).toBe('JobFailed');
  });

  test('a failed Job is replaced after its deletion, after refit retry, and after an edit of the Plan', async () => {
    const name = 'again';
    await scene.apply(planOf(name, fragile, { 'example.com/outcome': 'failure' }));
    const attempts = new Set<string>();
    const nextFailure = async (): Promise<Job> =>
      await vi.waitFor(async () => {
        const [job, ...others] = await scene.jobsOf(name);
        const { uid = '' } = job?.metadata ?? {};
        expect({ others, isNew: !attempts.has(uid) }).toEqual({ others: [], isNew: true });
        const times =
          conditionOf(await scene.plan(name), 'RefitFailedNodes').message?.match(/\d{4}\S+Z/) ?? [];
        expect(Date.parse(times[0] ?? '')).toBeGreaterThanOrEqual(
          timeOf(job?.metadata.creationTimestamp),
        );
        attempts.add(uid);
        return job as Job;
      }, PATIENCE);
    const first = await nextFailure();
    const node = first.metadata.labels?.['upgrade.cattle.io/node'] ?? '';
    await scene.admin.delete(jobs, first.metadata.name, {
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
    expect(Object.keys((await scene.plan(name)).metadata.annotations ?? {})).toContain(
      'refit.upgrade.cattle.io/retry',
    );
    expect(metadata.labels?.['upgrade.cattle.io/node']).toBe(node);
    await scene.patch(name, { metadata: { labels: { 'example.com/outcome': null } } });
    await scene.until(name, 'Complete', 'True', 'Complete');
    expect((await scene.jobsOf(name)).map((job) => attempts.has(job.metadata.uid ?? ''))).toEqual([
      false,
      false,
    ]);
  });

  test('does not end the plan: a new version starts again', async () => {
    await scene.patch('fragile', {
      metadata: { labels: { 'example.com/outcome': null } },
      spec: { version: 'v2' },
    });
    const done = await scene.until('fragile', 'Complete', 'True', 'Complete');
    expect(done.status?.conditions?.map(({ type }) => type)).toEqual([
      'Complete',
      'Validated',
      'LatestResolved',
    ]);
  });
});

test('a Job that the API server refuses is reported, uses no slot, and is made after an edit of the Plan', async () => {
  const volumes = [{ name: 'own', source: '/a', destination: '/a' }];
  const spec = { nodeSelector: { matchLabels: { pool: 'fragile' } }, version: 'v1' };
  await scene.apply(
    planOf('refused', { ...spec, prepare: { image: 'example.com/prepare', volumes } }),
  );
  const all = `${FRAGILE.map((name) => `${name} refused at \\S+`).join(', ')}; generation 1`;
  const refused = await vi.waitFor(async () => {
    const found = await scene.plan('refused');
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
    async () => expect(await scene.messagesOf('refused', 'ValidationFailed')).toContain(words),
    PATIENCE,
  );
  await scene.patch('refused', { spec: { prepare: null } });
  await scene.until('refused', 'Complete', 'True', 'Complete');
  expect(await scene.jobsOf('refused')).toHaveLength(FRAGILE.length);
});

test('if the pod of a Job cannot be scheduled, an Event and refit status say why', async () => {
  const label = { 'kubernetes.io/hostname': 'server-1' };
  // The taint keeps the pod unscheduled, and kwok simulates only pods that are on one of its nodes.
  const spec = {
    version: 'v1',
    nodeSelector: { matchLabels: label },
    upgrade: { image: 'example.com/stall' },
  };
  await kubectlAs('admin', ['taint', 'node', 'server-1', 'example.com/busy=yes:NoSchedule']);
  await scene.apply(planOf('stalled', spec));
  const words = /server-1 is at Starting: its pod cannot be scheduled: 0\/\d+ nodes are available/;
  await vi.waitFor(
    async () => expect(await scene.messagesOf('server-1', 'Stalled')).toMatch(words),
    PATIENCE,
  );
  const flags = [
    '--plan',
    `cattle/${NAMESPACE}/stalled`,
    '--kubeconfig',
    await kubeconfigFor('admin'),
  ];
  expect((await runRefit('status', ...flags)).stdout.join('\n')).toContain(
    'its pod cannot be scheduled',
  );
  await scene.until('stalled', 'RefitStalled', 'True', 'Stalled');
  await kubectlAs('admin', ['taint', 'node', 'server-1', 'example.com/busy-']);
  await scene.until('stalled', 'Complete', 'True', 'Complete');
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

  test('a Plan outside its window waits with the message of the original, until a window opens', async () => {
    await scene.apply(
      planOf('windowed', {
        ...one,
        window: { days: [day(3)], startTime: '9:00', endTime: '10:00' },
      }),
    );
    const held = await scene.until('windowed', 'Complete', 'False', 'Waiting');
    expect(conditionOf(held, 'Complete').message).toBe(
      'current time is not within configured window',
    );
    expect(conditionOf(held, 'Validated').status).toBe('True');
    expect(await scene.jobsOf('windowed')).toEqual([]);
    const days = [0, 1, 2, 3, 4, 5, 6].map(day);
    await scene.patch('windowed', {
      spec: { window: { days, startTime: '00:00:00', endTime: '23:59:59' } },
    });
    await scene.until('windowed', 'Complete', 'True', 'Complete');
    expect(await scene.jobsOf('windowed')).toHaveLength(1);
  });

  test('a Plan whose window has an invalid start time is reported as invalid', async () => {
    await scene.apply(
      planOf('unreadable', {
        ...one,
        window: { days: [day(0)], startTime: '24:00', endTime: '10:00' },
      }),
    );
    const refused = await scene.until('unreadable', 'Validated', 'False', 'Error');
    expect(conditionOf(refused, 'Validated').message).toBe(
      'spec.window is invalid, startTime "24:00" is not a time of day; use for example 22:00',
    );
  });
});

test('a node keeps its slot after its Job for as long as the Plan says, and runs pods meanwhile', async () => {
  const label = 'plan.upgrade.cattle.io/delayed';
  const stop = new AbortController();
  const seen: string[] = [];
  const informer = createInformer(scene.admin, nodes);
  informer.addHandler({
    updated({ metadata, spec }) {
      if (!FRAGILE.includes(metadata.name)) return;
      const uncordoned = metadata.labels?.[label] ? 'done' : 'open';
      seen.push(`${metadata.name} ${spec?.unschedulable ? 'cordoned' : uncordoned}`);
    },
  });
  void informer.run(stop.signal);
  await informer.whenSynced(stop.signal);
  // Cordons the nodes instead of the kubectl in the Jobs. kwok only simulates the pods of the Jobs, so no kubectl runs
  // in them.
  const made = createInformer(scene.admin, jobs, {
    namespace: NAMESPACE,
    labelSelector: 'upgrade.cattle.io/plan=delayed',
  });
  made.addHandler({
    added: ({ metadata }) =>
      void scene.admin.patch(nodes, metadata.labels?.['upgrade.cattle.io/node'] ?? '', CORDON, {
        type: 'merge',
      }),
  });
  void made.run(stop.signal);
  const spec = { nodeSelector: { matchLabels: { pool: 'fragile' } }, version: 'v3', cordon: true };
  await scene.apply(planOf('delayed', { ...spec, postCompleteDelay: '3s' }));
  await scene.until('delayed', 'Complete', 'True', 'Complete');
  // The watch may deliver the changes later.
  await vi.waitFor(
    () => expect(seen).toEqual(expect.arrayContaining(FRAGILE.map((name) => `${name} done`))),
    PATIENCE,
  );
  stop.abort();
  const rests = expect.stringContaining('keeps its slot for 3 s');
  await vi.waitFor(
    async () => expect(await scene.messagesOf('delayed', 'JobCompleteWaiting')).toEqual(rests),
    PATIENCE,
  );
  const ended = (await scene.jobsOf('delayed')).toSorted(
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

test('a paused UpgradePolicy holds a Plan, and its status lists this Plan', async () => {
  const policy = {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'cattle-calm' },
    spec: { plans: [{ dialect: 'cattle', namespace: NAMESPACE, name: 'calm' }], paused: true },
  };
  await applyManifest(JSON.stringify(policy));
  await scene.apply(
    planOf('calm', {
      nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'server-2' } },
      version: 'v1',
    }),
  );
  await vi.waitFor(
    async () => expect(conditionOf(await scene.plan('calm'), 'RefitWaits').status).toBe('True'),
    PATIENCE,
  );
  const covers = ['get', 'upgradepolicy', 'cattle-calm', '-o', 'jsonpath={.status.covers}'];
  const covered = `["cattle/${NAMESPACE}/calm"]`;
  await vi.waitFor(
    async () => expect((await kubectlAs('admin', covers)).stdout).toBe(covered),
    PATIENCE,
  );
  expect(await scene.jobsOf('calm')).toEqual([]);
  await kubectlAs('admin', ['delete', 'upgradepolicy', 'cattle-calm']);
  await scene.until('calm', 'Complete', 'True', 'Complete');
});

test('Refit adopts and resumes a Job that the original left paused', async () => {
  await scene.apply(
    planOf('taken', { nodeSelector: { matchLabels: { pool: 'nobody' } }, version: 'v1' }),
  );
  const { latestHash: hash = '' } =
    (await scene.until('taken', 'Complete', 'True', 'Complete')).status ?? {};
  const rendering = {
    plan: await scene.plan('taken'),
    node: await scene.admin.get(nodes, 'server-1'),
    version: 'v1',
    hash,
  };
  const config = {
    name: 'system-upgrade-controller',
    namespace: NAMESPACE,
    job: DEFAULT_JOB_SETTINGS,
  };
  const job = jobOf(config, { ...rendering, settings: config.job });
  const { metadata } = await scene.admin.create(jobs, {
    ...job,
    spec: { ...job.spec, parallelism: 0 },
  });
  await scene.patch('taken', {
    spec: { nodeSelector: { matchLabels: { pool: null, 'kubernetes.io/hostname': 'server-1' } } },
  });
  await vi.waitFor(async () => {
    const [only, ...others] = await scene.jobsOf('taken');
    expect([only?.metadata.uid, only?.status?.succeeded, others]).toEqual([metadata.uid, 1, []]);
  }, PATIENCE);
  await scene.until('taken', 'Complete', 'True', 'Complete');
});

test('refit status shows the Plans of all namespaces to a user with the viewer role', async () => {
  const flags = ['-o', 'json', '--kubeconfig', await kubeconfigFor('viewer')];
  const { code, stdout, stderr } = await runRefit('status', ...flags);
  expect({ code, stderr }).toEqual({ code: 0, stderr: [] });
  const { plans } = JSON.parse(stdout.join('')) as { plans: PlanJson[] };
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

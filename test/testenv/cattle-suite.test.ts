/** Re-creates what the original's own tests ask of a controller, its hazards at a take-over, and what a policy adds, on a real API server. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import type { DrainSpec } from '../../src/api/cattle/workload.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { jobOf } from '../../src/dialects/cattle/plan/job.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Job, jobs, nodes, type ObjectMeta, secrets } from '../../src/kube/resources.ts';
import { claimOn } from '../../src/signal/at-work.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import { secretReader } from '../support/builders/secret-reader.ts';
import {
  conditionOf,
  installKinds,
  NAMESPACE,
  nodeOf,
  planOf,
  startController,
} from './cattle-rig.ts';
import { apply as applyManifest, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';
import { runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 120_000, interval: 200 };
const NODES = ['suite-1', 'suite-2', 'suite-3'];
const TAINT = 'example.com/held';
const [ALL, NOBODY] = ['suite', 'nobody'].map((pool) => ({
  nodeSelector: { matchLabels: { pool } },
  version: 'v1',
}));

let directory = '';
let admin: KubeClient;
let controller: Process;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-suite-'));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  admin = await clientOf('admin');
  await installKinds();
  for (const name of NODES) await admin.create(nodes, nodeOf(name, { pool: 'suite' }));
  controller = await startController(directory, { SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: '0' });
});

afterAll(async () => {
  await controller.stop();
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', '--all', '-n', NAMESPACE]);
  await vi.waitFor(async () => expect(await jobsOf()).toEqual([]), PATIENCE);
  for (const name of NODES) await admin.delete(nodes, name);
  admin.close();
  await rm(directory, { recursive: true });
});

async function apply(
  name: string,
  spec: Partial<CattleSpec>,
  labels: Record<string, string> = {},
): Promise<void> {
  await applyManifest(JSON.stringify(planOf(name, spec, labels)));
}

async function patch(name: string, change: object): Promise<void> {
  await admin.patch(cattlePlans, name, change, { namespace: NAMESPACE, type: 'merge' });
}

async function until(
  name: string,
  type: string,
  status: string,
  reason: string,
): Promise<CattlePlan> {
  return await vi.waitFor(async () => {
    const found = await admin.get(cattlePlans, name, { namespace: NAMESPACE });
    expect(conditionOf(found, type)).toMatchObject({ status, reason });
    return found;
  }, PATIENCE);
}

async function jobsOf(plan?: string): Promise<Job[]> {
  const labelSelector =
    plan === undefined ? 'upgrade.cattle.io/plan' : `upgrade.cattle.io/plan=${plan}`;
  return (await admin.list(jobs, { namespace: NAMESPACE, labelSelector })).items;
}

/** As soon as it is there. */
async function onlyJobOf(plan: string): Promise<Job> {
  return await vi.waitFor(async () => {
    const [job, ...others] = await jobsOf(plan);
    if (!job || others.length > 0) throw new Error(`not one Job of ${plan}`);
    return job;
  }, PATIENCE);
}

/** Pods of the Plan's Jobs get no place on these nodes until the test ends or the returned function is called. */
async function hold(...names: readonly string[]): Promise<() => Promise<void>> {
  await kubectlAs('admin', ['taint', 'node', ...names, `${TAINT}=yes:NoSchedule`]);
  const release = async (): Promise<void> =>
    void (await kubectlAs('admin', ['taint', 'node', ...names, `${TAINT}-`]));
  onTestFinished(release);
  return release;
}

interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext?: unknown;
}

interface PodTemplate {
  readonly metadata: Pick<ObjectMeta, 'labels' | 'annotations'>;
  readonly spec: {
    readonly initContainers?: readonly Container[];
    readonly containers: readonly Container[];
  };
}

const templateOf = ({ spec }: Job): PodTemplate => spec?.['template'] as PodTemplate;

const only = (name: string): Partial<CattleSpec> => ({
  version: 'v1',
  nodeSelector: { matchLabels: { 'kubernetes.io/hostname': name } },
});

describe('what the original asks of itself', () => {
  test.each<[string, object, RegExp]>([
    ['a day that is none', { window: { days: ['never'] } }, /spec\.window\.days/],
    ['no upgrade', { upgrade: null }, /spec\.upgrade/],
  ])('the API server refuses %s', async (_name, spec, words) => {
    await expect(apply('refused', { ...NOBODY, ...spec })).rejects.toThrow(words);
  });

  test('a negative delay is refused until it is positive', async () => {
    await apply('delay', { ...only('suite-1'), postCompleteDelay: '-30s' });
    const refused = await until('delay', 'Validated', 'False', 'Error');
    expect(conditionOf(refused, 'Validated').message).toBe('spec.postCompleteDelay is negative');
    await patch('delay', { spec: { postCompleteDelay: '1s' } });
    await until('delay', 'Complete', 'True', 'Complete');
    expect(await jobsOf('delay')).toMatchObject([{ status: { succeeded: 1 } }]);
  });

  test('a drain has one container, with the selector of the Plan and of the controller', async () => {
    const matchExpressions = [{ key: 'component', operator: 'NotIn', values: ['sonobuoy'] }];
    await apply('drains', { ...only('suite-1'), drain: { podSelector: { matchExpressions } } });
    await until('drains', 'Complete', 'True', 'Complete');
    const [job] = await jobsOf('drains');
    const selector = 'component notin (sonobuoy),!upgrade.cattle.io/controller';
    expect(job?.spec).toMatchObject({
      template: {
        spec: { initContainers: [{ args: expect.arrayContaining([selector]) as string[] }] },
      },
    });
  });

  test.each([
    ['v1.2.3+test', 'v1.2.3-test'],
    ['test', 'test'],
  ])('version %s is resolved', async (version, latestVersion) => {
    const name = `version-${latestVersion.length}`;
    await apply(name, { ...NOBODY, version });
    const { status } = await until(name, 'LatestResolved', 'True', 'Version');
    expect(status).toMatchObject({
      latestVersion,
      latestHash: expect.stringMatching(/^[0-9a-f]{56}$/) as string,
    });
  });

  test('a Secret with ignoreUpdates does not count into the hash', async () => {
    await applyManifest(
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: secretReader(NAMESPACE, 'ignored') }),
    );
    await admin.create(secrets, { metadata: { name: 'ignored', namespace: NAMESPACE } });
    onTestFinished(async () => await admin.delete(secrets, 'ignored', { namespace: NAMESPACE }));
    await apply('ignoring', {
      ...NOBODY,
      secrets: [{ name: 'ignored', path: 'x', ignoreUpdates: true }],
    });
    await apply('plain', { ...NOBODY });
    await apply('empty-secret', { ...NOBODY, secrets: [{ name: 'ignored', path: 'x' }] });
    const hashOf = async (name: string) =>
      (await until(name, 'Complete', 'True', 'Complete')).status?.latestHash;
    const plain = await hashOf('plain');
    const before = await hashOf('empty-secret');
    expect(before).not.toBe(plain);
    await admin.patch(
      secrets,
      'ignored',
      { data: { a: 'YQ==' } },
      { namespace: NAMESPACE, type: 'merge' },
    );
    await vi.waitFor(async () => expect(await hashOf('empty-secret')).not.toBe(before), PATIENCE);
    expect(await hashOf('ignoring')).toBe(plain);
  });

  test('its Job has the metadata, images, environment, Secrets and rights that the Plan asks for', async () => {
    const long = `${'a'.repeat(60)}-secret`;
    const given = [
      { name: 'given', path: '/etc/given' },
      { name: 'bare', path: '' },
      { name: long, path: 'x' },
    ];
    const rights = { privileged: false, capabilities: { add: ['CAP_SYS_TIME'] } };
    const { metadata, ...plan } = planOf('whole', {
      ...only('suite-3'),
      secrets: given.map((secret) => ({ ...secret, ignoreUpdates: true })),
      prepare: { image: 'test/image:t' },
      upgrade: { image: 'img.example.com:5000/test/image', securityContext: rights },
    });
    const keys = { 'x.cattle.io/a': 'a', 'plan.cattle.io/b': 'b', 'some.other/c': 'c' };
    await applyManifest(
      JSON.stringify({ ...plan, metadata: { ...metadata, labels: keys, annotations: keys } }),
    );
    const job = await onlyJobOf('whole');
    const template = templateOf(job);
    for (const { labels, annotations } of [job.metadata, template.metadata])
      for (const copied of [labels, annotations]) {
        expect(copied).toMatchObject({ 'some.other/c': 'c' });
        expect(
          Object.keys(copied ?? {}).filter((key) => /^(x|plan)\.cattle\.io/.test(key)),
        ).toEqual([]);
      }
    const [upgrade] = template.spec.containers;
    expect(template.spec.initContainers).toMatchObject([
      { name: 'prepare', image: 'test/image:t' },
    ]);
    expect(upgrade).toMatchObject({ name: 'upgrade', image: 'img.example.com:5000/test/image:v1' });
    expect(upgrade?.securityContext).toEqual(rights);
    const names = [
      'NODE_NAME',
      'POD_NAME',
      'POD_UID',
      'PLAN_NAME',
      'PLAN_LATEST_HASH',
      'PLAN_LATEST_VERSION',
    ];
    expect(upgrade?.env.map(({ name }) => name)).toEqual(
      names.map((name) => `SYSTEM_UPGRADE_${name}`),
    );
    const mounts = upgrade?.volumeMounts.slice(2) ?? [];
    const places = [
      '/etc/given',
      '/run/system-upgrade/secrets/bare',
      '/run/system-upgrade/secrets/x',
    ];
    expect(mounts.map(({ mountPath }) => mountPath)).toEqual(places);
    for (const [index, { name }] of given.entries())
      expect(mounts[index]?.name).toContain(`secret-${name.slice(0, 49)}`);
  });

  test.each<[number | undefined, DrainSpec, number | undefined, string[]]>([
    [
      12_345,
      { timeout: 60_000_000_000, skipWaitForDeleteTimeout: -1 },
      12_345,
      ['--timeout', '1m0s'],
    ],
    [undefined, { timeout: '90s', skipWaitForDeleteTimeout: 0 }, 600, ['--timeout', '90s']],
    [0, { skipWaitForDeleteTimeout: 1 }, undefined, ['--skip-wait-for-delete-timeout', '1']],
    [-1, { timeout: 1_500_000_000 }, 600, ['--timeout', '1.5s']],
  ])('a deadline of %s, and a drain with %j', async (wanted, drain, deadline, words) => {
    const name = `deadline-${wanted ?? 'none'}`.replace('--', '-minus-');
    const limit = wanted === undefined ? {} : { jobActiveDeadlineSecs: wanted };
    await apply(name, { ...only('suite-2'), ...limit, drain });
    const job = await onlyJobOf(name);
    expect(job.spec?.['activeDeadlineSeconds']).toBe(deadline);
    const { initContainers = [] } = templateOf(job).spec;
    expect(initContainers[0]?.args.slice(6)).toEqual(words);
  });

  test('a Job over its deadline says so, and an edit makes exactly one fresh Job', async () => {
    const release = await hold('suite-2');
    await apply('late', { ...only('suite-2'), jobActiveDeadlineSecs: 1 });
    const failed = await until('late', 'Complete', 'False', 'JobFailed');
    const words = 'DeadlineExceeded: Job was active longer than specified deadline';
    expect(conditionOf(failed, 'Complete').message).toContain(words);
    const [before] = await jobsOf('late');
    await release();
    await patch('late', { spec: { jobActiveDeadlineSecs: 600, upgrade: { args: ['exit 0'] } } });
    await until('late', 'Complete', 'True', 'Complete');
    const after = await onlyJobOf('late');
    expect(after.status).toMatchObject({ succeeded: 1 });
    for (const absent of ['active', 'failed']) expect(after.status).not.toHaveProperty(absent);
    expect(after.metadata.uid).not.toBe(before?.metadata.uid);
  });

  test('labels after the end are those of the status', async () => {
    const labels = {
      'example.com/v': '$(LATEST_VERSION)',
      'example.com/h': '$(LATEST_HASH)',
      'example.com/x': 'x',
    };
    await apply('labels', { ...only('suite-3'), postCompleteLabels: labels });
    const { status } = await until('labels', 'Complete', 'True', 'Complete');
    expect((await admin.get(nodes, 'suite-3')).metadata.labels).toMatchObject({
      'example.com/v': status?.latestVersion,
      'example.com/h': status?.latestHash,
      'example.com/x': 'x',
    });
  });
});

test('a Job goes with the node that it was for, and the Plan goes on', async () => {
  const name = 'suite-gone';
  await admin.create(nodes, nodeOf(name, { pool: 'suite-gone' }));
  await kubectlAs('admin', ['taint', 'node', name, `${TAINT}=yes:NoSchedule`]);
  await apply('gone', { nodeSelector: { matchLabels: { pool: 'suite-gone' } }, version: 'v1' });
  await onlyJobOf('gone');
  await admin.delete(nodes, name);
  await vi.waitFor(async () => expect(await jobsOf('gone')).toEqual([]), PATIENCE);
  await until('gone', 'Complete', 'True', 'Complete');
});

describe('at a take-over', () => {
  /** A Job as the original left it, and the Plan that now selects its node. */
  async function leftBehind(
    name: string,
    outcome: Record<string, string>,
    end?: string,
  ): Promise<string> {
    await apply(name, { ...NOBODY }, outcome);
    const plan = await until(name, 'Complete', 'True', 'Complete');
    const config = {
      name: 'system-upgrade-controller',
      namespace: NAMESPACE,
      job: DEFAULT_JOB_SETTINGS,
    };
    const settings = { ...config.job, backoffLimit: 0 };
    const node = await admin.get(nodes, 'suite-1');
    const hash = plan.status?.latestHash ?? '';
    const made = jobOf({ ...config, job: settings }, { plan, node, version: 'v1', hash, settings });
    const { metadata } = await admin.create(jobs, made);
    if (end !== undefined)
      await kubectlAs('admin', [
        'wait',
        `--for=condition=${end}`,
        `job/${metadata.name}`,
        '-n',
        NAMESPACE,
      ]);
    await patch(name, {
      spec: {
        nodeSelector: { matchLabels: { pool: 'suite', 'kubernetes.io/hostname': 'suite-1' } },
      },
    });
    return metadata.uid ?? '';
  }

  test('a Job that runs is waited for, not made again', async () => {
    const release = await hold('suite-1');
    const uid = await leftBehind('running', {});
    await release();
    const label = ['metadata', 'labels', 'plan.upgrade.cattle.io/running'];
    await vi.waitFor(
      async () => expect(await admin.get(nodes, 'suite-1')).toHaveProperty(label),
      PATIENCE,
    );
    expect((await jobsOf('running')).map(({ metadata }) => metadata.uid)).toEqual([uid]);
  });

  test('one that has ended marks its node', async () => {
    const uid = await leftBehind('ended', {}, 'Complete');
    const label = ['metadata', 'labels', 'plan.upgrade.cattle.io/ended'];
    await vi.waitFor(
      async () => expect(await admin.get(nodes, 'suite-1')).toHaveProperty(label),
      PATIENCE,
    );
    expect((await jobsOf('ended')).map(({ metadata }) => metadata.uid)).toEqual([uid]);
  });

  test('one that has failed counts as failed', async () => {
    const uid = await leftBehind('broken', { 'example.com/outcome': 'failure' }, 'Failed');
    const { status } = await until('broken', 'Complete', 'False', 'JobFailed');
    expect(status?.applying).toEqual(['suite-1']);
    expect((await jobsOf('broken')).map(({ metadata }) => metadata.uid)).toEqual([uid]);
  });

  test('a Plan without spec, and one with a drain of 64 bits, hold up nobody', async () => {
    const metadata = { name: 'empty', namespace: NAMESPACE };
    await admin.create(cattlePlans, { apiVersion: 'upgrade.cattle.io/v1', kind: 'Plan', metadata });
    await apply('long', { ...NOBODY, drain: { timeout: 60_000_000_000 } });
    await until('long', 'Complete', 'True', 'Complete');
    const empty = await until('empty', 'LatestResolved', 'False', 'Error');
    expect([empty.status?.latestHash, conditionOf(empty, 'Validated').status]).toEqual([
      undefined,
      'True',
    ]);
    expect(await jobsOf('empty')).toEqual([]);
  });

  test('a second controller in the namespace makes no second Job', async () => {
    await mkdir(join(directory, 'second', 'logs'), { recursive: true });
    await mkdir(join(directory, 'second', 'pids'));
    const second = await startController(join(directory, 'second'), {
      SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: '0',
    });
    onTestFinished(async () => await second.stop());
    await apply('twice', { ...ALL, concurrency: 3 });
    await until('twice', 'Complete', 'True', 'Complete');
    expect(await jobsOf('twice')).toHaveLength(NODES.length);
  });
});

describe('a policy', () => {
  async function policy(
    name: string,
    spec: object,
    bound: readonly string[] = [name],
  ): Promise<void> {
    const plans = bound.map((each) => ({ dialect: 'cattle', namespace: NAMESPACE, name: each }));
    const metadata = { name: `suite-${name}` };
    const object = { apiVersion: 'upgrade.refit.dev/v1alpha1', kind: 'UpgradePolicy', metadata };
    await applyManifest(JSON.stringify({ ...object, spec: { plans, ...spec } }));
    onTestFinished(
      async () => void (await kubectlAs('admin', ['delete', 'upgradepolicy', metadata.name])),
    );
  }

  const gateOf = async (name: string): Promise<string> => {
    const flags = [
      '--plan',
      `cattle/${NAMESPACE}/${name}`,
      '--kubeconfig',
      await kubeconfigFor('admin'),
    ];
    return (await runRefit('why', ...flags)).stdout.join('\n');
  };

  test('closes the window before each node, not only before the first', async () => {
    const release = await hold('suite-1', 'suite-2', 'suite-3');
    await policy('closing', {});
    await apply('closing', { ...ALL });
    await until('closing', 'Complete', 'False', 'SyncJob');
    await policy('closing', { blackouts: [{ from: '2000-01-01', to: '2999-01-01' }] });
    await release();
    await vi.waitFor(async () => {
      const found = await admin.get(cattlePlans, 'closing', { namespace: NAMESPACE });
      expect(conditionOf(found, 'RefitWaits').status).toBe('True');
      expect(found.status?.applying).toBeUndefined();
    }, PATIENCE);
    expect(await jobsOf('closing')).toHaveLength(1);
    expect(await gateOf('closing')).toContain('blackout');
    await policy('closing', {});
    await until('closing', 'Complete', 'True', 'Complete');
  });

  test('goes on within its failure budget, and stops beyond', async () => {
    await policy('budget', { failureBudget: 1 });
    await apply('budget', { ...ALL }, { 'example.com/outcome': 'failure' });
    await vi.waitFor(async () => expect(await jobsOf('budget')).toHaveLength(2), PATIENCE);
    await until('budget', 'Complete', 'False', 'JobFailed');
    expect(await jobsOf('budget')).toHaveLength(2);
  });

  test('starts the control plane first, then zone after zone, and a preview shows that', async () => {
    const labels = [
      'suite-1 zone=b',
      'suite-2 zone=a',
      'suite-3 node-role.kubernetes.io/control-plane=',
    ];
    for (const each of labels) await kubectlAs('admin', ['label', 'node', ...each.split(' ')]);
    onTestFinished(async () => {
      const keys = ['zone-', 'node-role.kubernetes.io/control-plane-'];
      await kubectlAs('admin', ['label', 'node', ...NODES, ...keys]);
    });
    await policy('ordered', { order: ['zone'] });
    const inOrder = ['suite-3', 'suite-2', 'suite-1'];
    const releases = new Map<string, () => Promise<void>>();
    for (const name of inOrder) releases.set(name, await hold(name));
    await apply('ordered', { ...ALL, concurrency: 3 });
    const started = new Set<string | undefined>();
    for (const name of inOrder) {
      started.add(name);
      await vi.waitFor(async () => {
        const found = await admin.get(cattlePlans, 'ordered', { namespace: NAMESPACE });
        expect(found.status?.applying).toEqual([name]);
        const known = (await jobsOf('ordered')).map(
          ({ metadata }) => metadata.labels?.['upgrade.cattle.io/node'],
        );
        expect(new Set(known)).toEqual(started);
      }, PATIENCE);
      if (name === 'suite-3') {
        expect(await gateOf('ordered')).toContain(
          'suite-2 comes after suite-3 in the order of UpgradePolicy suite-ordered',
        );
        const flags = ['--kubeconfig', await kubeconfigFor('admin')];
        expect((await runRefit('preview', ...flags)).stdout.join('\n')).toMatch(
          /wave 1 +suite-2\n +wave 2 +suite-1\n/,
        );
      }
      await releases.get(name)?.();
    }
    await until('ordered', 'Complete', 'True', 'Complete');
  });

  test('lets no more nodes be away than it says, whatever cordoned them', async () => {
    await policy('away', { maxUnavailable: 1, virtualNodes: 'Count' });
    await kubectlAs('admin', ['cordon', 'suite-3']);
    onTestFinished(async () => void (await kubectlAs('admin', ['uncordon', 'suite-3'])));
    await apply('away', { ...only('suite-1') });
    await vi.waitFor(async () => {
      const found = await admin.get(cattlePlans, 'away', { namespace: NAMESPACE });
      expect(conditionOf(found, 'RefitWaits').status).toBe('True');
    }, PATIENCE);
    expect(await jobsOf('away')).toEqual([]);
    await kubectlAs('admin', ['uncordon', 'suite-3']);
    await until('away', 'Complete', 'True', 'Complete');
  });

  test('starts no Plan under a limit whose `prepare` would wait for another one', async () => {
    const release = await hold('suite-2');
    await policy('prepared', { maxUnavailable: 1, virtualNodes: 'Count' }, ['agents', 'servers']);
    await apply('servers', { ...only('suite-2') });
    await apply('agents', {
      ...only('suite-1'),
      prepare: { image: 'example.com/upgrade', args: ['prepare', 'servers'] },
    });
    await until('agents', 'RefitWaits', 'True', 'Gate');
    await onlyJobOf('servers');
    const words =
      'suite-1 would take a place of maxUnavailable, and wait for Plan system-upgrade/servers';
    expect(await gateOf('agents')).toContain(words);
    expect(await jobsOf('agents')).toEqual([]);
    await release();
    await until('agents', 'Complete', 'True', 'Complete');
    await until('servers', 'Complete', 'True', 'Complete');
  });

  test('keeps its limit over two Plans, and gets back a claim and a Job that somebody deleted', async () => {
    const claim = async (name: string) => claimOn(await admin.get(nodes, name));
    const release = await hold('suite-1', 'suite-2');
    await policy('limited', { maxUnavailable: 1, virtualNodes: 'Count' }, ['first', 'second']);
    await apply('first', { ...only('suite-1') });
    const { metadata } = await onlyJobOf('first');
    const claimed = await claim('suite-1');
    expect(claimed).toContain(`cattle/${NAMESPACE}/first/`);
    await apply('second', { ...only('suite-2') });
    await until('second', 'RefitWaits', 'True', 'Gate');
    await kubectlAs('admin', ['annotate', 'node', 'suite-1', 'upgrade.refit.dev/claimed-by-']);
    await kubectlAs('admin', ['delete', 'job', '-n', NAMESPACE, metadata.name]);
    await vi.waitFor(
      async () => expect((await onlyJobOf('first')).metadata.uid).not.toBe(metadata.uid),
      PATIENCE,
    );
    await vi.waitFor(async () => expect(await claim('suite-1')).toBe(claimed), PATIENCE);
    expect(await jobsOf('second')).toEqual([]);
    await release();
    await until('first', 'Complete', 'True', 'Complete');
    await until('second', 'Complete', 'True', 'Complete');
    for (const name of NODES)
      await vi.waitFor(async () => expect(await claim(name)).toBeUndefined(), PATIENCE);
  });
});

test('a pause and an abort leave no node without an end: what runs ends, nothing starts', async () => {
  const release = await hold('suite-1', 'suite-2', 'suite-3');
  await apply('aborted', { ...ALL });
  await until('aborted', 'Complete', 'False', 'SyncJob');
  const flags = [
    '--plan',
    `cattle/${NAMESPACE}/aborted`,
    '--kubeconfig',
    await kubeconfigFor('admin'),
  ];
  expect(await runRefit('pause', ...flags)).toMatchObject({ code: 0 });
  await release();
  const { status, metadata } = await until('aborted', 'RefitWaits', 'True', 'Gate');
  expect([status?.applying, await jobsOf('aborted')]).toMatchObject([
    undefined,
    [{ status: { succeeded: 1 } }],
  ]);
  expect(Object.keys(metadata.annotations ?? {})).toContain('refit.upgrade.cattle.io/pause');
  expect(await runRefit('abort', '--reason', 'enough', ...flags)).toMatchObject({ code: 0 });
  await until('aborted', 'RefitAborted', 'True', 'Aborted');
  const found = await jobsOf('aborted');
  expect(found.map(({ status }) => status?.succeeded)).toEqual([1]);
});

test('a Plan that goes back to an earlier version upgrades its nodes again', async () => {
  const uidsOnceComplete = async (version: string): Promise<unknown[]> => {
    await vi.waitFor(async () => {
      const { status } = await until('back', 'Complete', 'True', 'Complete');
      expect(status?.latestVersion).toBe(version);
    }, PATIENCE);
    const own = (await jobsOf('back')).filter(
      ({ metadata }) => metadata.labels?.['upgrade.cattle.io/version'] === version,
    );
    return own.map(({ metadata }) => metadata.uid);
  };
  await apply('back', { ...ALL, concurrency: NODES.length });
  const before = await uidsOnceComplete('v1');
  await patch('back', { spec: { version: 'v2' } });
  expect(await uidsOnceComplete('v2')).toHaveLength(NODES.length);
  await patch('back', { spec: { version: 'v1' } });
  const again = await uidsOnceComplete('v1');
  expect([again.length, again.filter((uid) => before.includes(uid))]).toEqual([NODES.length, []]);
});

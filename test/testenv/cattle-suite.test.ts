/**
 * Tests a controller on a real API server with re-created versions of the original's own tests. It also tests the risks
 * when Refit takes over from the original.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { DrainSpec } from '../../src/api/cattle/workload.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { jobOf } from '../../src/dialects/cattle/plan/job.ts';
import { type Job, jobs, nodes, type ObjectMeta, secrets } from '../../src/kube/resources.ts';
import { secretReader } from '../support/builders/secret-reader.ts';
import { conditionOf, NAMESPACE, nodeOf, planOf, startController } from './cattle-rig.ts';
import { CattleScene, PATIENCE, TAINT } from './cattle-scene.ts';
import { apply, only } from './cattle-suite-plans.ts';
import { apply as applyManifest, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const NODES = ['suite-1', 'suite-2', 'suite-3'];
const [ALL, NOBODY] = ['suite', 'nobody'].map((pool) => ({
  nodeSelector: { matchLabels: { pool } },
  version: 'v1',
}));

let scene: CattleScene;
beforeAll(async () => {
  scene = await CattleScene.open({ suite: NODES });
});
afterAll(async () => await scene.close());

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

describe('what the original asks of itself', () => {
  test.each<[string, object, RegExp]>([
    ['a day that is none', { window: { days: ['never'] } }, /spec\.window\.days/],
    ['no upgrade', { upgrade: null }, /spec\.upgrade/],
  ])('the API server refuses a Plan with %s', async (_name, spec, words) => {
    await expect(apply('refused', { ...NOBODY, ...spec })).rejects.toThrow(words);
  });

  test('a Plan with a negative postCompleteDelay is invalid until an edit makes the delay positive', async () => {
    await apply('delay', { ...only('suite-1'), postCompleteDelay: '-30s' });
    const refused = await scene.until('delay', 'Validated', 'False', 'Error');
    expect(conditionOf(refused, 'Validated').message).toBe('spec.postCompleteDelay is negative');
    await scene.patch('delay', { spec: { postCompleteDelay: '1s' } });
    await scene.until('delay', 'Complete', 'True', 'Complete');
    expect(await scene.jobsOf('delay')).toMatchObject([{ status: { succeeded: 1 } }]);
  });

  test('a Job with a drain has one init container, with the pod selectors of the Plan and of the controller', async () => {
    const matchExpressions = [{ key: 'component', operator: 'NotIn', values: ['sonobuoy'] }];
    await apply('drains', { ...only('suite-1'), drain: { podSelector: { matchExpressions } } });
    await scene.until('drains', 'Complete', 'True', 'Complete');
    const [job] = await scene.jobsOf('drains');
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
  ])(
    'a Plan with version %s gets a latestVersion and a latestHash in its status',
    async (version, latestVersion) => {
      const name = `version-${latestVersion.length}`;
      await apply(name, { ...NOBODY, version });
      const { status } = await scene.until(name, 'LatestResolved', 'True', 'Version');
      expect(status).toMatchObject({
        latestVersion,
        latestHash: expect.stringMatching(/^[0-9a-f]{56}$/) as string,
      });
    },
  );

  test('a Secret with ignoreUpdates does not change the hash of the Plan', async () => {
    await applyManifest(
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: secretReader(NAMESPACE, 'ignored') }),
    );
    await scene.admin.create(secrets, { metadata: { name: 'ignored', namespace: NAMESPACE } });
    onTestFinished(
      async () => await scene.admin.delete(secrets, 'ignored', { namespace: NAMESPACE }),
    );
    await apply('ignoring', {
      ...NOBODY,
      secrets: [{ name: 'ignored', path: 'x', ignoreUpdates: true }],
    });
    await apply('plain', { ...NOBODY });
    await apply('empty-secret', { ...NOBODY, secrets: [{ name: 'ignored', path: 'x' }] });
    const hashOf = async (name: string) =>
      (await scene.until(name, 'Complete', 'True', 'Complete')).status?.latestHash;
    const plain = await hashOf('plain');
    const before = await hashOf('empty-secret');
    expect(before).not.toBe(plain);
    await scene.admin.patch(
      secrets,
      'ignored',
      { data: { a: 'YQ==' } },
      { namespace: NAMESPACE, type: 'merge' },
    );
    await vi.waitFor(async () => expect(await hashOf('empty-secret')).not.toBe(before), PATIENCE);
    expect(await hashOf('ignoring')).toBe(plain);
  });

  test('a Job has the metadata, images, environment, Secrets and rights that its Plan asks for', async () => {
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
    const job = await scene.onlyJobOf('whole');
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
  ])(
    'a Plan with deadline %s and drain %j makes a Job with the right deadline and drain arguments',
    async (wanted, drain, deadline, words) => {
      const name = `deadline-${wanted ?? 'none'}`.replace('--', '-minus-');
      const limit = wanted === undefined ? {} : { jobActiveDeadlineSecs: wanted };
      await apply(name, { ...only('suite-2'), ...limit, drain });
      const job = await scene.onlyJobOf(name);
      expect(job.spec?.['activeDeadlineSeconds']).toBe(deadline);
      const { initContainers = [] } = templateOf(job).spec;
      expect(initContainers[0]?.args.slice(6)).toEqual(words);
    },
  );

  test('a Plan reports that its Job exceeded the deadline, and an edit of the Plan makes exactly one new Job', async () => {
    const release = await scene.hold('suite-2');
    await apply('late', { ...only('suite-2'), jobActiveDeadlineSecs: 1 });
    const failed = await scene.until('late', 'Complete', 'False', 'JobFailed');
    const words = 'DeadlineExceeded: Job was active longer than specified deadline';
    expect(conditionOf(failed, 'Complete').message).toContain(words);
    const [before] = await scene.jobsOf('late');
    await release();
    await scene.patch('late', {
      spec: { jobActiveDeadlineSecs: 600, upgrade: { args: ['exit 0'] } },
    });
    await scene.until('late', 'Complete', 'True', 'Complete');
    const after = await scene.onlyJobOf('late');
    expect(after.status).toMatchObject({ succeeded: 1 });
    for (const absent of ['active', 'failed']) expect(after.status).not.toHaveProperty(absent);
    expect(after.metadata.uid).not.toBe(before?.metadata.uid);
  });

  test('after an upgrade, postCompleteLabels put the version and the hash of the Plan status on the node', async () => {
    const labels = {
      'example.com/v': '$(LATEST_VERSION)',
      'example.com/h': '$(LATEST_HASH)',
      'example.com/x': 'x',
    };
    await apply('labels', { ...only('suite-3'), postCompleteLabels: labels });
    const { status } = await scene.until('labels', 'Complete', 'True', 'Complete');
    expect((await scene.admin.get(nodes, 'suite-3')).metadata.labels).toMatchObject({
      'example.com/v': status?.latestVersion,
      'example.com/h': status?.latestHash,
      'example.com/x': 'x',
    });
  });
});

test('a Job goes with the node that it was for, and the Plan goes on', async () => {
  const name = 'suite-gone';
  await scene.admin.create(nodes, nodeOf(name, { pool: 'suite-gone' }));
  await kubectlAs('admin', ['taint', 'node', name, `${TAINT}=yes:NoSchedule`]);
  await apply('gone', { nodeSelector: { matchLabels: { pool: 'suite-gone' } }, version: 'v1' });
  await scene.onlyJobOf('gone');
  await scene.admin.delete(nodes, name);
  await vi.waitFor(async () => expect(await scene.jobsOf('gone')).toEqual([]), PATIENCE);
  await scene.until('gone', 'Complete', 'True', 'Complete');
});

describe('at a take-over', () => {
  /** Creates a Job as the original left it, and lets the Plan select its node. */
  async function leftBehind(
    name: string,
    outcome: Record<string, string>,
    end?: string,
  ): Promise<string> {
    await apply(name, { ...NOBODY }, outcome);
    const plan = await scene.until(name, 'Complete', 'True', 'Complete');
    const config = {
      name: 'system-upgrade-controller',
      namespace: NAMESPACE,
      job: DEFAULT_JOB_SETTINGS,
    };
    const settings = { ...config.job, backoffLimit: 0 };
    const node = await scene.admin.get(nodes, 'suite-1');
    const hash = plan.status?.latestHash ?? '';
    const made = jobOf({ ...config, job: settings }, { plan, node, version: 'v1', hash, settings });
    const { metadata } = await scene.admin.create(jobs, made);
    if (end !== undefined)
      await kubectlAs('admin', [
        'wait',
        `--for=condition=${end}`,
        `job/${metadata.name}`,
        '-n',
        NAMESPACE,
      ]);
    await scene.patch(name, {
      spec: {
        nodeSelector: { matchLabels: { pool: 'suite', 'kubernetes.io/hostname': 'suite-1' } },
      },
    });
    return metadata.uid ?? '';
  }

  test('if a Job of the original still runs, Refit waits for it and makes no second Job', async () => {
    const release = await scene.hold('suite-1');
    const uid = await leftBehind('running', {});
    await release();
    const label = ['metadata', 'labels', 'plan.upgrade.cattle.io/running'];
    await vi.waitFor(
      async () => expect(await scene.admin.get(nodes, 'suite-1')).toHaveProperty(label),
      PATIENCE,
    );
    expect((await scene.jobsOf('running')).map(({ metadata }) => metadata.uid)).toEqual([uid]);
  });

  test('if a Job of the original has completed, Refit labels the node and makes no second Job', async () => {
    const uid = await leftBehind('ended', {}, 'Complete');
    const label = ['metadata', 'labels', 'plan.upgrade.cattle.io/ended'];
    await vi.waitFor(
      async () => expect(await scene.admin.get(nodes, 'suite-1')).toHaveProperty(label),
      PATIENCE,
    );
    expect((await scene.jobsOf('ended')).map(({ metadata }) => metadata.uid)).toEqual([uid]);
  });

  test('if a Job of the original has failed, Refit counts the node as failed and makes no second Job', async () => {
    const uid = await leftBehind('broken', { 'example.com/outcome': 'failure' }, 'Failed');
    const { status } = await scene.until('broken', 'Complete', 'False', 'JobFailed');
    expect(status?.applying).toEqual(['suite-1']);
    expect((await scene.jobsOf('broken')).map(({ metadata }) => metadata.uid)).toEqual([uid]);
  });

  test('a Plan without spec does not block another Plan, even one whose drain timeout needs 64 bits', async () => {
    const metadata = { name: 'empty', namespace: NAMESPACE };
    await scene.admin.create(cattlePlans, {
      apiVersion: 'upgrade.cattle.io/v1',
      kind: 'Plan',
      metadata,
    });
    await apply('long', { ...NOBODY, drain: { timeout: 60_000_000_000 } });
    await scene.until('long', 'Complete', 'True', 'Complete');
    const empty = await scene.until('empty', 'LatestResolved', 'False', 'Error');
    expect([empty.status?.latestHash, conditionOf(empty, 'Validated').status]).toEqual([
      undefined,
      'True',
    ]);
    expect(await scene.jobsOf('empty')).toEqual([]);
  });

  test('with a second controller in the namespace, each node still gets only one Job', async () => {
    await mkdir(join(scene.directory, 'second', 'logs'), { recursive: true });
    await mkdir(join(scene.directory, 'second', 'pids'));
    const second = await startController(join(scene.directory, 'second'), {
      SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: '0',
    });
    onTestFinished(async () => await second.stop());
    await apply('twice', { ...ALL, concurrency: 3 });
    await scene.until('twice', 'Complete', 'True', 'Complete');
    expect(await scene.jobsOf('twice')).toHaveLength(NODES.length);
  });
});

test('a pause and an abort leave no node without an end: what runs ends, nothing starts', async () => {
  const release = await scene.hold('suite-1', 'suite-2', 'suite-3');
  await apply('aborted', { ...ALL });
  await scene.until('aborted', 'Complete', 'False', 'SyncJob');
  const flags = [
    '--plan',
    `cattle/${NAMESPACE}/aborted`,
    '--kubeconfig',
    await kubeconfigFor('admin'),
  ];
  expect(await runRefit('pause', ...flags)).toMatchObject({ code: 0 });
  await release();
  const { status, metadata } = await scene.until('aborted', 'RefitWaits', 'True', 'Gate');
  expect([status?.applying, await scene.jobsOf('aborted')]).toMatchObject([
    undefined,
    [{ status: { succeeded: 1 } }],
  ]);
  expect(Object.keys(metadata.annotations ?? {})).toContain('refit.upgrade.cattle.io/pause');
  expect(await runRefit('abort', '--reason', 'enough', ...flags)).toMatchObject({ code: 0 });
  await scene.until('aborted', 'RefitAborted', 'True', 'Aborted');
  const found = await scene.jobsOf('aborted');
  expect(found.map(({ status }) => status?.succeeded)).toEqual([1]);
});

test('a Plan that goes back to an earlier version upgrades its nodes again', async () => {
  const uidsOnceComplete = async (version: string): Promise<unknown[]> => {
    await vi.waitFor(async () => {
      const { status } = await scene.until('back', 'Complete', 'True', 'Complete');
      expect(status?.latestVersion).toBe(version);
    }, PATIENCE);
    const own = (await scene.jobsOf('back')).filter(
      ({ metadata }) => metadata.labels?.['upgrade.cattle.io/version'] === version,
    );
    return own.map(({ metadata }) => metadata.uid);
  };
  await apply('back', { ...ALL, concurrency: NODES.length });
  const before = await uidsOnceComplete('v1');
  await scene.patch('back', { spec: { version: 'v2' } });
  expect(await uidsOnceComplete('v2')).toHaveLength(NODES.length);
  await scene.patch('back', { spec: { version: 'v1' } });
  const again = await uidsOnceComplete('v1');
  expect([again.length, again.filter((uid) => before.includes(uid))]).toEqual([NODES.length, []]);
});

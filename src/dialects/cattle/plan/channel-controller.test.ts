/** Proves when a channel is requested, and how its answer is recorded while other clients write the same Plan. */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { refusal } from '../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { FakeClock, settle } from '../../../../test/support/clock/fake-clock.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { KubeClient, WatchEvent } from '../../../kube/client.ts';
import type { Node } from '../../../kube/resources.ts';
import { createInformer } from '../../../kube/watch/informer.ts';
import { type Controller, runController } from '../../../runtime/run-controller.ts';
import { messageOf } from '../../../util/errors.ts';
import { silentLogger } from '../../../util/log.ts';
import { channelController } from './channel-controller.ts';
import type { VersionConfig } from './version-rules.ts';

const CHANNEL = 'https://example.com/stable';

interface Rig {
  readonly controller: Controller;
  readonly clock: FakeClock;
  readonly asked: string[];
  /** The messages of the Events. */
  readonly told: string[];
  /** The requests to the API server, for example `replace status`. */
  readonly requests: string[];
  /** Returns the Plan as the server stores it now. */
  readonly stored: () => CattlePlan;
  readonly reconcile: () => Promise<number | undefined>;
  /** Gives the Plan another channel, as a user does. The controller has not seen this change yet. */
  readonly follow: (channel: string) => void;
  /** Deletes the Plan and creates it again, as a user does. The controller has not seen this change yet. */
  readonly recreate: () => void;
}

interface Setting {
  readonly conflicts?: number;
  readonly spec?: Partial<CattleSpec>;
  readonly status?: CattlePlan['status'];
  readonly deletionTimestamp?: string;
  readonly nodes?: readonly Node[];
  readonly versions?: VersionConfig;
}

/** Returns a scene whose server has one Plan, and answers the first `conflicts` writes with a conflict. */
async function start(
  ask: () => Promise<string>,
  {
    conflicts = 0,
    spec = { version: '', channel: CHANNEL },
    status,
    deletionTimestamp,
    nodes = [],
    versions = {},
  }: Setting = {},
): Promise<Rig> {
  const clock = new FakeClock(T0);
  let plan: CattlePlan = { ...buildCattlePlan('p', spec), ...(status ? { status } : {}) };
  if (deletionTimestamp !== undefined)
    plan = { ...plan, metadata: { ...plan.metadata, deletionTimestamp } };
  let left = conflicts;
  const asked: string[] = [];
  const told: string[] = [];
  const requests: string[] = [];
  async function* watch(): AsyncGenerator<WatchEvent<CattlePlan>> {
    yield { type: 'ADDED', object: plan };
    yield {
      type: 'BOOKMARK',
      object: {
        metadata: {
          name: '',
          resourceVersion: '1',
          annotations: { 'k8s.io/initial-events-end': 'true' },
        },
      },
    };
    await Promise.withResolvers<never>().promise;
  }
  const client = {
    watch,
    get: async (_resource: unknown, name: string, { namespace }: { namespace: string }) => {
      requests.push(`get ${namespace}/${name}`);
      return await Promise.resolve(plan);
    },
    replace: async (
      _resource: unknown,
      object: CattlePlan,
      { subresource }: { subresource: string },
    ) => {
      requests.push(`replace ${subresource}`);
      if (left-- > 0) throw refusal(409, 'Conflict');
      plan = object;
      return await Promise.resolve(object);
    },
  } as unknown as KubeClient;
  const controller = channelController({
    plans: createInformer(client, cattlePlans, { clock, log: silentLogger }),
    writer: client,
    events: {
      record: (_plan, { type, reason, message }) => void told.push(`${type} ${reason} ${message}`),
    },
    intervalMs: 15 * MINUTE,
    clock,
    log: silentLogger,
    ask: async (channel, latestVersion) => {
      asked.push(`${channel} ${latestVersion || 'first'}`);
      return await ask();
    },
    listNodes: async () => await Promise.resolve(nodes),
    versions,
  });
  const [source] = controller.sources;
  const stop = new AbortController();
  void source?.informer.run(stop.signal);
  await source?.informer.whenSynced(stop.signal);
  stop.abort();
  await settle();
  const reconcile = async (): Promise<number | undefined> => {
    const context = { abort: stop.signal, log: silentLogger, failures: 0 };
    return (await controller.reconcile('system-upgrade/p', context))?.requeueAfterMs;
  };
  const follow = (channel: string): void => {
    plan = { ...plan, spec: { ...plan.spec, channel } as CattleSpec };
  };
  const recreate = (): void => {
    plan = { ...plan, metadata: { ...plan.metadata, uid: 'another' } };
  };
  const stored = (): CattlePlan => plan;
  return { controller, clock, asked, told, requests, stored, reconcile, follow, recreate };
}

const tells = async (): Promise<string> => await Promise.resolve('v1.2.3+k3s1');
const fails = async (): Promise<string> => await Promise.reject(new Error('no route'));

test('Refit asks a channel at once, and again after the polling interval', async () => {
  const { reconcile, asked, clock, stored } = await start(tells);
  expect(await reconcile()).toBe(15 * MINUTE);
  expect(stored().status).toMatchObject({
    latestVersion: 'v1.2.3-k3s1',
    conditions: [{ type: 'LatestResolved', status: 'True', reason: 'Channel' }],
  });
  await clock.advance(5 * MINUTE);
  expect(await reconcile()).toBe(10 * MINUTE);
  expect(asked).toHaveLength(1);
  await clock.advance(10 * MINUTE);
  await reconcile();
  expect(asked).toHaveLength(2);
});

test('write conflicts on the status of a Plan do not make Refit ask the channel again', async () => {
  const { reconcile, asked, stored } = await start(tells, { conflicts: 2 });
  await reconcile();
  expect(asked).toEqual([`${CHANNEL} first`]);
  expect(stored().status?.latestVersion).toBe('v1.2.3-k3s1');
});

test.each([
  ['answer', tells, undefined],
  ['failure', fails, 'no route'],
])(
  'a %s that comes after the Plan was given another channel is not recorded',
  async (_, answer, problem) => {
    const { reconcile, stored, told, follow } = await start(async () => {
      follow('https://example.com/v1.34');
      return await answer();
    });
    expect(await reconcile().then(() => undefined, messageOf)).toBe(problem);
    expect([stored().status, told]).toEqual([undefined, []]);
  },
);

test('a channel that is no address fails with the sentence that refit validate prints', async () => {
  const spec = { version: '', channel: 'not a url' };
  const { reconcile, told } = await start(fails, { spec });
  await expect(reconcile()).rejects.toThrow();
  expect(told).toEqual([
    'Warning ResolveFailed spec.channel: "not a url" is not an http or https URL',
  ]);
});

test('an answer that comes after the Plan was created again is not recorded', async () => {
  const { reconcile, stored, told, recreate } = await start(async () => {
    recreate();
    return await tells();
  });
  await reconcile();
  expect([stored().status, told]).toEqual([undefined, []]);
});

test('the interval begins with the answer, however long the process has run', async () => {
  const { reconcile, asked, clock } = await start(tells);
  await clock.advance(5 * MINUTE);
  await reconcile();
  await clock.advance(5 * MINUTE);
  expect([await reconcile(), asked.length]).toEqual([10 * MINUTE, 1]);
});

test('the same answer is neither written nor told again', async () => {
  const { reconcile, asked, told, requests, clock } = await start(tells);
  await reconcile();
  await clock.advance(15 * MINUTE);
  await reconcile();
  expect(asked).toHaveLength(2);
  const get = 'get system-upgrade/p';
  expect(requests).toEqual([get, 'replace status', get]);
  expect(told).toEqual(['Normal Resolved the channel says version v1.2.3-k3s1']);
});

test('a version that is recorded already is no news', async () => {
  const { reconcile, stored, told } = await start(tells, {
    status: { latestVersion: 'v1.2.3-k3s1' },
  });
  await reconcile();
  expect(stored().status?.conditions).toMatchObject([{ type: 'LatestResolved', status: 'True' }]);
  expect(told).toEqual([]);
});

test('after ten conflicts in a row it fails, and runs again later', async () => {
  const { reconcile } = await start(tells, { conflicts: 10 });
  await expect(reconcile()).rejects.toThrow(
    'could not write the status of Plan p: 10 conflicts in a row',
  );
});

test('the channel of a Plan that is being deleted is not asked', async () => {
  const { reconcile, asked } = await start(tells, { deletionTimestamp: later(0) });
  expect([await reconcile(), asked]).toEqual([undefined, []]);
});

test('a failure is told where nothing was resolved before', async () => {
  const { reconcile, stored, told } = await start(fails);
  await expect(reconcile()).rejects.toThrow('no route');
  await expect(reconcile()).rejects.toThrow('no route');
  expect(stored().status?.conditions).toMatchObject([
    { type: 'LatestResolved', status: 'False', reason: 'Error', message: 'no route' },
  ]);
  expect(told).toEqual(['Warning ResolveFailed no route']);
});

test('a resolved version stays while the channel fails, and the Plan reports since when it fails', async () => {
  const conditions = [{ type: 'LatestResolved', status: 'True', reason: 'Channel' }];
  const status = { latestVersion: 'v1', conditions };
  const failures = ['no route', 'no route', 'status 503'];
  const ask = async (): Promise<string> => {
    const failure = failures.shift();
    return failure === undefined ? await tells() : await Promise.reject(new Error(failure));
  };
  const { reconcile, stored, asked, told, clock } = await start(ask, { status });
  const failing = (why: string): object => ({
    latestVersion: 'v1',
    conditions: [
      ...conditions,
      {
        type: 'RefitChannelFails',
        reason: 'ResolveFailed',
        message: `the channel has returned no version since ${later(0)}: ${why}`,
      },
    ],
  });
  for (const why of ['no route', 'no route', 'status 503']) {
    await expect(reconcile()).rejects.toThrow(why);
    expect(stored().status).toMatchObject(failing(why));
    await clock.advance(MINUTE);
  }
  expect(asked[0]).toBe(`${CHANNEL} v1`);
  await reconcile();
  expect(stored().status?.conditions?.map(({ type }) => type)).toEqual(['LatestResolved']);
  expect(told).toEqual([
    'Warning ResolveFailed no route',
    'Warning ResolveFailed status 503',
    'Normal Resolved the channel says version v1.2.3-k3s1',
  ]);
});

test('a plan that follows no channel any more has none that fails', async () => {
  const conditions = [{ type: 'RefitChannelFails', status: 'True', message: 'why' }];
  const { reconcile, stored } = await start(fails, {
    spec: { version: 'v1' },
    status: { conditions },
  });
  await reconcile();
  expect(stored().status?.conditions).toEqual([]);
});

test('Refit does not ask the channel of a Plan that names a version', async () => {
  const spec = { version: 'v1', channel: CHANNEL };
  const { reconcile, asked, requests } = await start(tells, { spec });
  expect(await reconcile()).toBeUndefined();
  expect([asked, requests]).toEqual([[], []]);
});

test('kubectl replace --force while the channel is asked: the new Plan gets its version', async () => {
  const clock = new FakeClock(T0);
  const made = (uid: string, resourceVersion: string): CattlePlan => {
    const plan = buildCattlePlan('p', { version: '', channel: 'https://example.com/stable' });
    return { ...plan, metadata: { ...plan.metadata, uid, resourceVersion, generation: 1 } };
  };
  let stored = made('old', '1');
  const first = stored;
  const replaced = Promise.withResolvers<void>();
  const answering = Promise.withResolvers<string>();
  let asked = 0;
  async function* watch(): AsyncGenerator<WatchEvent<CattlePlan>> {
    yield { type: 'ADDED', object: first };
    yield {
      type: 'BOOKMARK',
      object: {
        metadata: {
          name: '',
          resourceVersion: '1',
          annotations: { 'k8s.io/initial-events-end': 'true' },
        },
      },
    };
    await replaced.promise;
    yield { type: 'DELETED', object: first };
    yield { type: 'ADDED', object: stored };
    await Promise.withResolvers<never>().promise;
  }
  const client = {
    watch,
    get: async () => await Promise.resolve(stored),
    replace: async (_resource: unknown, object: CattlePlan) => {
      stored = object;
      return await Promise.resolve(object);
    },
  } as unknown as KubeClient;
  const controller = channelController({
    plans: createInformer(client, cattlePlans, { clock, log: silentLogger }),
    writer: client,
    events: { record: () => undefined },
    intervalMs: 15 * MINUTE,
    clock,
    log: silentLogger,
    ask: async () => {
      asked++;
      return await answering.promise;
    },
    listNodes: async () => await Promise.resolve([]),
    versions: {},
  });
  const stop = new AbortController();
  const [source] = controller.sources;
  void source?.informer.run(stop.signal);
  await source?.informer.whenSynced(stop.signal);
  const running = runController(controller, stop.signal, { clock, log: silentLogger });
  await settle();
  expect(asked).toBe(1);
  // A user runs `kubectl replace --force` before the channel has answered.
  stored = made('new', '3');
  replaced.resolve();
  await settle();
  answering.resolve('v1.2.3');
  await settle();
  await clock.advance(MINUTE);
  await settle();
  stop.abort();
  await running;
  expect([asked, stored.status?.latestVersion]).toEqual([2, 'v1.2.3']);
});

const INSTALLER = {
  version: '',
  channel: CHANNEL,
  upgrade: { image: 'rancher/k3s-upgrade' },
};

function nodeAt(name: string, version: string): Node {
  const node = buildNode(name, { labels: { 'kubernetes.io/hostname': name } });
  return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion: version } } };
}

const toldBy = (plan: CattlePlan, type: string) =>
  plan.status?.conditions?.find((condition) => condition.type === type);

const ACCEPTED: CattlePlan['status'] = {
  latestVersion: 'v1.36.3-k3s1',
  conditions: [{ type: 'LatestResolved', status: 'True', reason: 'Channel' }],
};

test('an answer that is older than a kubelet of the Plan is not accepted, and a condition names both', async () => {
  const nodes = [nodeAt('a', 'v1.26.1+k3s1'), nodeAt('b', 'v1.36.3+k3s1')];
  const rig = await start(async () => await Promise.resolve('v1.26.3+k3s1'), {
    spec: INSTALLER,
    nodes,
  });
  expect(await rig.reconcile()).toBe(15 * MINUTE);
  const words =
    'the channel says v1.26.3-k3s1, which is older than v1.36.3+k3s1 of Node b: Refit does not accept it; set spec.version if the nodes must go to that version';
  expect(rig.stored().status?.latestVersion).toBe(undefined);
  expect(toldBy(rig.stored(), 'LatestResolved')).toMatchObject({
    status: 'False',
    reason: 'OlderVersion',
    message: words,
  });
  expect(rig.told).toEqual([`Warning OlderVersion ${words}`]);
});

test('an answer that is older than the last accepted one is not accepted, also by a new process', async () => {
  const rig = await start(async () => await Promise.resolve('v1.36.2+k3s1'), {
    spec: INSTALLER,
    status: ACCEPTED,
    nodes: [nodeAt('a', 'v1.36.1+k3s1')],
  });
  await rig.reconcile();
  expect(rig.stored().status?.latestVersion).toBe('v1.36.3-k3s1');
  expect(toldBy(rig.stored(), 'LatestResolved')).toMatchObject({ status: 'True' });
  expect(toldBy(rig.stored(), 'RefitChannelFails')).toMatchObject({
    status: 'True',
    reason: 'OlderVersion',
    message: expect.stringContaining(
      'the channel says v1.36.2-k3s1, which is older than v1.36.3-k3s1, which it said before',
    ) as string,
  });
});

test('a newer answer is accepted, and removes the condition about the older one', async () => {
  const status = {
    ...ACCEPTED,
    conditions: [
      ...(ACCEPTED?.conditions ?? []),
      { type: 'RefitChannelFails', status: 'True', reason: 'OlderVersion', message: 'old' },
    ],
  };
  const rig = await start(async () => await Promise.resolve('v1.36.4+k3s1'), {
    spec: INSTALLER,
    status,
    nodes: [nodeAt('a', 'v1.36.3+k3s1')],
  });
  await rig.reconcile();
  expect(rig.stored().status?.latestVersion).toBe('v1.36.4-k3s1');
  expect(toldBy(rig.stored(), 'RefitChannelFails')).toBe(undefined);
});

test.each<[string, Setting]>([
  ['the checks are off', { spec: INSTALLER, versions: { checksVersions: false } }],
  ['the image installs something else', { spec: { ...INSTALLER, upgrade: { image: 'a' } } }],
  [
    'the newer node is virtual',
    {
      spec: INSTALLER,
      nodes: [
        {
          ...nodeAt('b', 'v1.36.3+k3s1'),
          spec: { taints: [{ key: 'virtual-kubelet.io/provider', effect: 'NoSchedule' }] },
        },
      ],
    },
  ],
  [
    'the newer node is not of the Plan',
    { spec: { ...INSTALLER, nodeSelector: { matchLabels: { pool: 'x' } } } },
  ],
])('an older answer is accepted if %s', async (_name, setting) => {
  const rig = await start(async () => await Promise.resolve('v1.26.3+k3s1'), {
    nodes: [nodeAt('b', 'v1.36.3+k3s1')],
    ...setting,
  });
  await rig.reconcile();
  expect(rig.stored().status?.latestVersion).toBe('v1.26.3-k3s1');
});

/** Tests what the agent changes on its node, and that it does not touch what others changed. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type MemoryCluster, startMemoryCluster } from '../../../test/agent/memory-cluster.ts';
import { buildPod, type PodTraits } from '../../../test/support/builders/pods.ts';
import { SkewedClock } from '../../../test/support/clock/skewed-clock.ts';
import { EXCLUSION_LABEL } from '../../drain/cordon-marks.ts';
import type { KubeClient } from '../../kube/client.ts';
import { leases, type Node, namespaces, nodes, pods, type Resource } from '../../kube/resources.ts';
import { StatusError, TransportError } from '../../kube/status-error.ts';
import type { AgentDrain } from '../../signal/annotations.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';
import { type Clock, microTime, systemClock } from '../../util/clock.ts';
import { type Logger, silentLogger } from '../../util/log.ts';
import {
  DrainLateError,
  type Maintenance,
  type MaintenanceParts,
  nodeMaintenance,
} from './node-maintenance.ts';

let cluster: MemoryCluster;
let count = 0;
let name: string;
const { signal: abort } = new AbortController();
const HOUR = 3_600_000;
const MERGE = { type: 'merge', namespace: 'default' } as const;

beforeAll(async () => {
  cluster = await startMemoryCluster();
  for (const namespace of ['k0s-autopilot', 'default'])
    await cluster.admin
      .create(namespaces, { metadata: { name: namespace } })
      .catch(() => undefined);
});
afterAll(async () => await cluster.stop());
beforeEach(async () => {
  name = `maintenance-${++count}`;
  await cluster.admin.create(nodes, { metadata: { name, annotations: { theirs: 'kept' } } });
});

const LABELLED = { isExpected: async () => await Promise.resolve(true) };

function maintenanceWith(client: KubeClient, more: Partial<MaintenanceParts> = {}): Maintenance {
  const tools = { clock: systemClock, random: () => 0, log: silentLogger };
  return nodeMaintenance({ client, nodeName: () => name, delegation: LABELLED, ...tools, ...more });
}

const nodeNow = async (): Promise<Node> => await cluster.admin.get(nodes, name);

/** Returns a client that gives these answers. If `answer` returns undefined, the server answers. */
function answering(
  answer: (method: string | symbol, args: unknown[]) => Promise<unknown> | undefined,
): KubeClient {
  const handler: ProxyHandler<KubeClient> = {
    get: (target, key) => {
      const real: unknown = Reflect.get(target, key);
      if (typeof real !== 'function') return real;
      return (...args: unknown[]): unknown =>
        answer(key, args) ?? (real.apply(target, args) as unknown);
    },
  };
  return new Proxy(cluster.admin, handler);
}

/** Returns a client whose `method` fails once with each of the errors before it works. */
function failing(method: 'get' | 'replace', errors: Error[]): KubeClient {
  return answering((asked) => {
    const error = asked === method ? errors.shift() : undefined;
    return error && Promise.reject(error);
  });
}

/** Returns a client that finds DaemonSets, because the API server in memory has none. */
function withDaemonSets(): KubeClient {
  const isOne = ([resource]: unknown[]): boolean => (resource as Resource).kind === 'DaemonSet';
  return answering((asked, args) =>
    asked === 'get' && isOne(args) ? Promise.resolve({ metadata: { name: 'log' } }) : undefined,
  );
}

const conflict = (): Error => new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' });

test('the agent cordons the node in the name of its owner, and evicts its pods', async () => {
  const { admin } = cluster;
  const spec = {
    nodeName: name,
    containers: [{ name: 'c', image: 'i' }],
    terminationGracePeriodSeconds: 0,
  };
  await admin.create(pods, { ...buildPod(`${name}-app`), spec });
  await admin.create(pods, {
    ...buildPod(`${name}-daemon`, { controller: 'DaemonSet/log' }),
    spec,
  });
  await maintenanceWith(withDaemonSets()).cordonAndDrain('uid/1', {}, abort);
  const node = await nodeNow();
  expect(node.spec?.unschedulable).toBe(true);
  expect(node.metadata.annotations).toEqual({
    theirs: 'kept',
    'upgrade.refit.dev/cordoned-by': 'uid/1',
  });
  const left = await admin.list(pods, { fieldSelector: `spec.nodeName=${name}` });
  expect(left.items.map((pod) => pod.metadata.name)).toEqual([`${name}-daemon`]);
});

test('a cordon of the agent is not written again, and its uncordon removes it', async () => {
  const maintenance = maintenanceWith(cluster.admin);
  expect(await maintenance.hasCordon(abort)).toBe(false);
  await maintenance.cordonAndDrain('uid/1', {}, abort);
  const { resourceVersion } = (await nodeNow()).metadata;
  await maintenance.cordonAndDrain('uid/2', {}, abort);
  expect((await nodeNow()).metadata.resourceVersion).toBe(resourceVersion);
  expect(await maintenance.hasCordon(abort)).toBe(true);
  await maintenance.uncordon('ours', abort);
  const node = await nodeNow();
  expect(node.spec?.unschedulable).toBeUndefined();
  expect(node.metadata.annotations).toEqual({ theirs: 'kept' });
  expect(await maintenance.hasCordon(abort)).toBe(false);
});

test('the node leaves load balancers with its cordon, and returns to them with its uncordon', async () => {
  const maintenance = maintenanceWith(cluster.admin);
  await maintenance.cordonAndDrain('uid/1', { graceMs: 1 }, abort);
  const label = async (): Promise<string | undefined> =>
    (await nodeNow()).metadata.labels?.[EXCLUSION_LABEL];
  expect(await label()).toBe('refit');
  await maintenance.uncordon('ours', abort);
  expect(await label()).toBeUndefined();
});

test('the agent reads the node as it is now', async () => {
  expect((await maintenanceWith(cluster.admin).readNode(abort))?.metadata).toEqual(
    (await nodeNow()).metadata,
  );
  expect(
    await maintenanceWith(cluster.admin, { nodeName: () => 'nobody' }).readNode(abort),
  ).toBeUndefined();
  await expect(
    maintenanceWith(failing('get', [new TransportError('reset')])).readNode(abort),
  ).rejects.toThrow('reset');
});

test('the agent does not remove a cordon that somebody else set', async () => {
  await cluster.admin.replace(nodes, { ...(await nodeNow()), spec: { unschedulable: true } });
  const maintenance = maintenanceWith(cluster.admin);
  await maintenance.cordonAndDrain('uid/1', {}, abort);
  expect(await maintenance.hasCordon(abort)).toBe(false);
  await maintenance.uncordon('ours', abort);
  expect((await nodeNow()).spec?.unschedulable).toBe(true);
});

describe('what the policy asks of a node that drains itself', () => {
  const addPod = async (traits: PodTraits, grace = 0): Promise<void> => {
    const spec = {
      nodeName: name,
      containers: [{ name: 'c', image: 'i' }],
      terminationGracePeriodSeconds: grace,
    };
    const pod = buildPod(`${name}-pod`, traits);
    await cluster.admin.create(pods, { ...pod, spec: { ...pod.spec, ...spec } });
  };
  const podsLeft = async (): Promise<number> =>
    (await cluster.admin.list(pods, { fieldSelector: `spec.nodeName=${name}` })).items.length;

  test('without a drain pods stay, and nothing is written', async () => {
    await addPod({});
    const before = await nodeNow();
    await maintenanceWith(cluster.admin).cordonAndDrain('uid/1', { enabled: false }, abort);
    expect(await nodeNow()).toEqual(before);
    expect(await podsLeft()).toBe(1);
  });

  test.each<[string, AgentDrain, PodTraits, string]>([
    ['local data', { localData: 'refuse' }, { emptyDir: true }, 'has data in an emptyDir volume'],
    ['no controller', { unmanagedPods: 'refuse' }, { controller: null }, 'has no controller'],
  ])(
    'a pod with %s is evicted only if the policy allows that',
    async (_name, asked, traits, reason) => {
      await addPod(traits);
      const maintenance = maintenanceWith(cluster.admin);
      await expect(maintenance.cordonAndDrain('uid/1', asked, abort)).rejects.toThrow(
        `default/${name}-pod ${reason}`,
      );
      expect(await podsLeft()).toBe(1);
      await maintenance.cordonAndDrain('uid/1', {}, abort);
      expect(await podsLeft()).toBe(0);
    },
  );

  test("a grace period counts in the place of the pod's own", async () => {
    await addPod({}, 3600);
    await maintenanceWith(cluster.admin).cordonAndDrain('uid/1', { gracePeriodSeconds: 0 }, abort);
    expect(await podsLeft()).toBe(0);
  });

  test('a drain that takes longer than its deadline ends with the pods that are left', async () => {
    await addPod({ metadata: { finalizers: ['example.com/stays'] } });
    let end = (): void => undefined;
    const clock: Clock = {
      ...systemClock,
      schedule(ms, callback) {
        if (ms !== HOUR) return systemClock.schedule(ms, callback);
        end = callback;
        return () => undefined;
      },
    };
    // The timeout occurs when the pod has been counted.
    const log: Logger = {
      ...silentLogger,
      info: (_message, fields) => fields?.['left'] === 1 && end(),
    };
    const made = maintenanceWith(cluster.admin, { clock, log }).cordonAndDrain(
      'uid/1',
      { timeoutMs: HOUR },
      abort,
    );
    await expect(made).rejects.toThrow(
      /^the node was not drained within 1 h: 1 pod is left \(default\/maintenance-\d+-pod\)$/,
    );
    await expect(made).rejects.toThrow(DrainLateError);
    await cluster.admin.patch(
      pods,
      `${name}-pod`,
      { metadata: { finalizers: null } },
      { ...MERGE },
    );
  });

  test('the cordon of anybody is removed if the policy uncordons always', async () => {
    await cluster.admin.replace(nodes, { ...(await nodeNow()), spec: { unschedulable: true } });
    await maintenanceWith(cluster.admin).uncordon('always', abort);
    expect((await nodeNow()).spec?.unschedulable).toBeUndefined();
  });
});

test('a cordon is tried again after a conflict and after a lost answer', async () => {
  const errors = [conflict(), new TransportError('reset'), conflict()];
  await maintenanceWith(failing('replace', errors)).cordonAndDrain('uid/1', {}, abort);
  expect(errors).toEqual([]);
  expect((await nodeNow()).spec?.unschedulable).toBe(true);
});

const forbidden = (): Error =>
  new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'may not' });

test('a refused cordon is tried again, as rights may not be known yet, but not for ever', async () => {
  /** On this clock, a minute takes a twentieth of a second. */
  const hurried = new SkewedClock(systemClock, { rate: 1_200 });
  const [some, many] = [3, 10_000].map((count) => Array.from({ length: count }, forbidden)) as [
    Error[],
    Error[],
  ];
  await maintenanceWith(failing('replace', some)).cordonAndDrain('uid/1', {}, abort);
  expect((await nodeNow()).spec?.unschedulable).toBe(true);
  await expect(
    maintenanceWith(failing('get', many), { clock: hurried }).cordonAndDrain('uid/1', {}, abort),
  ).rejects.toThrow('may not');
});

test('a cordon that was cancelled is not tried again', async () => {
  const stop = new AbortController();
  const errors = Array.from({ length: 50 }, () => new TransportError('down'));
  const client = failing('get', errors);
  const made = maintenanceWith(client).cordonAndDrain('uid/1', {}, stop.signal);
  stop.abort(new Error('superseded'));
  await expect(made).rejects.toThrow('superseded');
});

test('a host without a node has no maintenance', async () => {
  const client = failing(
    'get',
    Array.from({ length: 9 }, () => new Error('nobody may ask')),
  );
  const maintenance = maintenanceWith(client, { nodeName: () => undefined });
  await maintenance.cordonAndDrain('uid/1', {}, abort);
  await maintenance.uncordon('ours', abort);
  expect(await maintenance.hasCordon(abort)).toBe(false);
  expect(await maintenance.readNode(abort)).toBeUndefined();
});

test('who cordons is read from the lease', async () => {
  const { admin } = cluster;
  const maintenance = maintenanceWith(admin);
  expect(await maintenance.whoCordons(abort)).toBe('unknown');
  const metadata = {
    name: 'k0s-autopilot-controller',
    namespace: 'k0s-autopilot',
    labels: { [CENTRAL_CORDONING_LABEL]: 'a' },
  };
  const spec = { holderIdentity: 'a', leaseDurationSeconds: 60, renewTime: microTime(Date.now()) };
  await admin.create(leases, { metadata, spec });
  expect(await maintenance.whoCordons(abort)).toBe('leader');
  const delegation = { isExpected: async (of: string) => await Promise.resolve(of !== name) };
  expect(await maintenanceWith(admin, { delegation }).whoCordons(abort)).toBe('self');
  const withoutNode = maintenanceWith(admin, { delegation, nodeName: () => undefined });
  expect(await withoutNode.whoCordons(abort)).toBe('leader');
  await admin.delete(leases, metadata.name, { namespace: metadata.namespace });
  expect(
    await maintenanceWith(failing('get', [new TransportError('down')])).whoCordons(abort),
  ).toBe('unknown');
});

/** Tests the checks of machines, and of the health checks of policies. */
import { expect, test } from 'vitest';
import { NOW, readyContext, readyNode } from '../../../test/support/ready/world.ts';
import type { HealthCheck } from '../../health/checks.ts';
import { answer, unknown } from '../asking.ts';
import type { DialectReadiness } from '../context.ts';
import { checkGround } from './ground.ts';
import { checkHealth } from './health.ts';

const lease = (namespace: string, name: string, time: number, labels: object = {}): object => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, namespace, labels },
  spec: { renewTime: new Date(time).toISOString() },
});
const SERVER = lease('kube-system', 'apiserver-x', NOW, {
  'apiserver.kubernetes.io/identity': 'kube-apiserver',
});
const ofNode = (name: string, offset: number): object =>
  lease('kube-node-lease', name, NOW + offset);
const ask = async (...objects: object[]) => await checkGround(readyContext({ objects }));

test('machines without a problem are ok', async () => {
  expect(await ask(SERVER, readyNode('w1'), ofNode('w1', -9_000))).toEqual([
    { state: 'ok', message: 'no node has pressure, a cordon, or a wrong clock' },
  ]);
});

test.each([
  [3_600_000, 'its clock is 3600 s ahead of that of the API server'],
  [-3_600_000, 'its clock is 3600 s behind that of the API server'],
])('a clock that differs by %d ms is a blocker', async (offset, message) => {
  expect(await ask(SERVER, readyNode('w1'), ofNode('w1', offset))).toEqual([
    { state: 'blocker', object: 'Node w1', message, cure: 'repair its time synchronization' },
  ]);
});

test('the clock of a node that is not Ready is not judged, because its Lease is old', async () => {
  const node = readyNode('w1', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } });
  expect(await ask(SERVER, node, ofNode('w1', -3_600_000))).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
});

const valid = (object: object, leaseDurationSeconds: number): object => {
  const { spec } = object as { spec: object };
  return { ...object, spec: { ...spec, leaseDurationSeconds } };
};

test.each([
  [40, -59_000, 'ok'],
  [40, -70_000, 'blocker'],
  // A kubelet renews a Lease of 300 seconds every 75 seconds.
  [300, -70_000, 'ok'],
  [300, -310_000, 'ok'],
  [300, -330_000, 'blocker'],
  // The Node is Ready for 40 seconds after the last renewal, however short its Lease is.
  [8, -50_000, 'ok'],
])(
  'a Lease that is valid for %d s and was renewed at %d ms is %s',
  async (seconds, offset, state) => {
    const found = await ask(SERVER, readyNode('w1'), valid(ofNode('w1', offset), seconds));
    expect(found.map((each) => each.state)).toEqual([state]);
  },
);

test('nodes that are Ready without a Lease, or with one that cannot be read, have unknown clocks', async () => {
  const unread = { ...lease('kube-node-lease', 'w2', NOW), spec: { renewTime: 'x' } };
  const objects = [SERVER, readyNode('w1'), readyNode('w2'), unread, readyNode('w3')];
  expect(await ask(...objects, ofNode('w3', 0))).toEqual([
    {
      state: 'unknown',
      object: 'Node w1, Node w2',
      message: 'its clock: it has no Lease in kube-node-lease with the time of a renewal',
    },
  ]);
});

const serverLease = (host: string, offset: number): object =>
  lease('kube-system', `apiserver-${host}`, NOW + offset, {
    'apiserver.kubernetes.io/identity': 'kube-apiserver',
    'kubernetes.io/hostname': host,
  });
const running = (...addresses: string[]): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: 'kubernetes',
    namespace: 'default',
    labels: { 'kubernetes.io/service-name': 'kubernetes' },
  },
  endpoints: addresses.map((address) => ({ addresses: [address] })),
});
const NODE = [readyNode('w1'), ofNode('w1', 0)];

test('an API server whose clock is ahead of that of another one is the blocker, and not the nodes', async () => {
  const servers = [serverLease('cp1', 0), serverLease('cp2', 120_000)];
  expect(await ask(...servers, running('10.0.0.1', '10.0.0.2'), ...NODE)).toEqual([
    {
      state: 'blocker',
      object: 'API server cp2, cp1',
      message: 'their clocks differ: that of cp1 is 120 s behind that of cp2',
      cure: 'repair their time synchronization',
    },
  ]);
});

test('API servers whose Leases differ by less than a renewal and a clock may differ are ok', async () => {
  const servers = [serverLease('cp1', -35_000), serverLease('cp2', 0)];
  expect(await ask(...servers, running('10.0.0.1', '10.0.0.2'), ...NODE)).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
});

test('the Lease of an API server that has ended is not compared', async () => {
  const servers = ['cp1', 'cp2', 'cp3'].map((host, index) => serverLease(host, index * -5_000));
  const ended = serverLease('cp0', -1_800_000);
  const addresses = running('10.0.0.1', '10.0.0.2', '10.0.0.3');
  expect(await ask(...servers, ended, addresses, ...NODE)).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
});

test.each<[string, object[]]>([
  ['a load balancer has the only address', [running('10.0.0.9')]],
  ['nobody names the addresses', []],
  ['two of three are there and differ', [serverLease('cp3', -300_000), running('a', 'b')]],
])('Leases of API servers that differ are unknown if %s', async (_title, more) => {
  const servers = [serverLease('cp1', 0), serverLease('cp2', -120_000)];
  expect(await ask(...servers, ...more, ...NODE)).toEqual([
    expect.objectContaining({
      state: 'unknown',
      object: expect.stringContaining('cp1, cp2') as string,
    }),
  ]);
});

test('clocks are unknown if no API server has a Lease', async () => {
  expect(await ask(readyNode('w1'), ofNode('w1', 0))).toEqual([
    { state: 'unknown', message: 'the clocks of nodes: no API server has a Lease in kube-system' },
  ]);
});

test.each(['DiskPressure', 'MemoryPressure', 'PIDPressure', 'NetworkUnavailable'])(
  'a node with the condition %s is a warning',
  async (type) => {
    const conditions = [
      { type: 'Ready', status: 'True' },
      { type, status: 'True' },
    ];
    const node = readyNode('w1', { status: { conditions } });
    expect(await ask(SERVER, node, ofNode('w1', 0))).toEqual([
      expect.objectContaining({
        state: 'warning',
        object: 'Node w1',
        message: `it reports ${type}`,
      }),
    ]);
  },
);

test('a node that is cordoned already is a warning', async () => {
  const node = readyNode('w1', { spec: { unschedulable: true } });
  expect(await ask(SERVER, node, ofNode('w1', 0))).toEqual([
    expect.objectContaining({ state: 'warning', object: 'Node w1' }),
  ]);
});

test('each dialect is asked what it knows about its machines and the new version', async () => {
  const dialect = (name: string): DialectReadiness => ({
    settings: async () => await Promise.reject(new Error('no settings are asked for')),
    machines: async (_asking, to) =>
      await Promise.resolve([
        { state: 'blocker', object: `Node ${name}`, message: `no room for ${to}` },
      ]),
  });
  const objects = [SERVER, readyNode('w1'), ofNode('w1', 0)];
  const dialects = [dialect('w1'), dialect('w2')];
  expect(await checkGround(readyContext({ objects, dialects, to: 'v1.36.4' }))).toEqual([
    { state: 'blocker', object: 'Node w1', message: 'no room for v1.36.4' },
    { state: 'blocker', object: 'Node w2', message: 'no room for v1.36.4' },
  ]);
});

const CHECK: HealthCheck = { kind: 'http', name: 'web', url: 'http://web.example.com' };
const JOB: HealthCheck = {
  kind: 'jobs',
  name: 'smoke',
  namespace: 'x',
  spec: {},
  timeoutMs: 1,
  everyMs: 1,
};
const ALERTS: HealthCheck = {
  kind: 'alerts',
  name: 'critical',
  source: 'prometheus',
  url: 'http://prometheus.example.com',
  labels: { severity: 'critical' },
};
const asking = (state: 'passing' | 'failing' | 'unknown', ...checks: HealthCheck[]) =>
  readyContext({
    policyChecks: answer(checks.map((check) => ({ policy: 'calm', check }))),
    askCheck: async () => await Promise.resolve({ state, message: 'it says so' }),
  });

test.each([
  ['failing', 'blocker'],
  ['unknown', 'unknown'],
] as const)('a health check that is %s is %s', async (state, expected) => {
  expect(await checkHealth(asking(state, CHECK))).toEqual([
    expect.objectContaining({
      state: expected,
      object: 'UpgradePolicy calm',
      message: 'health check web: it says so',
    }),
  ]);
});

test('health checks that pass are ok', async () => {
  expect(await checkHealth(asking('passing', CHECK))).toEqual([
    { state: 'ok', message: '1 health check of the policies pass' },
  ]);
});

test('a health check whose server does not answer is unknown', async () => {
  const context = readyContext({ policyChecks: answer([{ policy: 'calm', check: CHECK }]) });
  expect(await checkHealth(context)).toEqual([
    { state: 'unknown', object: 'UpgradePolicy calm', message: 'health check web: no server' },
  ]);
});

test('a health check that runs a Job is not made', async () => {
  expect(await checkHealth(asking('passing', JOB))).toEqual([
    {
      state: 'unknown',
      object: 'UpgradePolicy calm',
      message: 'health check smoke runs a Job, and Refit creates nothing here',
    },
  ]);
});

test('an alert with the label refit_precheck is asked for at each server of alerts', async () => {
  const labels: object[] = [];
  const context = {
    ...asking('passing', ALERTS),
    askCheck: async (check: object) => {
      labels.push((check as typeof ALERTS).labels);
      return await Promise.resolve({ state: 'passing' as const, message: '' });
    },
  };
  await checkHealth(context);
  expect(labels).toEqual([{ severity: 'critical' }, { refit_precheck: 'true' }]);
});

test('policies that cannot be read are unknown', async () => {
  expect(await checkHealth(readyContext({ policyChecks: unknown('no right') }))).toEqual([
    { state: 'unknown', message: 'no right' },
  ]);
});

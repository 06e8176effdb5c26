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
    expect(await ask(SERVER, readyNode('w1', { status: { conditions } }))).toEqual([
      expect.objectContaining({
        state: 'warning',
        object: 'Node w1',
        message: `it reports ${type}`,
      }),
    ]);
  },
);

test('a node that is cordoned already is a warning', async () => {
  expect(await ask(SERVER, readyNode('w1', { spec: { unschedulable: true } }))).toEqual([
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

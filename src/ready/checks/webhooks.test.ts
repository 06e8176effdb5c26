/** Tests the check of admission webhooks. */
import { expect, test } from 'vitest';
import { NOW, namespaceObject, readyContext } from '../../../test/support/ready/world.ts';
import { checkWebhooks, type Webhook } from './webhooks.ts';

const RULE = { apiGroups: [''], operations: ['CREATE'], resources: ['pods'] };
const configuration = (more: Partial<Webhook> = {}): object => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
  metadata: { name: 'inject' },
  webhooks: [
    {
      name: 'inject.example.com',
      failurePolicy: 'Fail',
      rules: [RULE],
      clientConfig: { service: { name: 'inject', namespace: 'mesh' } },
      ...more,
    },
  ],
});
const slice = (...nodeNames: string[]): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: 'inject-x',
    namespace: 'mesh',
    labels: { 'kubernetes.io/service-name': 'inject' },
  },
  endpoints: nodeNames.map((nodeName) => ({
    addresses: ['10.1.0.1'],
    nodeName,
    conditions: { ready: true },
  })),
});
const SPACES = [namespaceObject('kube-system'), namespaceObject('mesh'), namespaceObject('app')];
const ask = async (...objects: object[]) =>
  await checkWebhooks(readyContext({ objects: [...SPACES, ...objects] }));

test('a webhook on two nodes is ok', async () => {
  expect(await ask(configuration(), slice('w1', 'w2'))).toEqual([
    { state: 'ok', message: '1 webhook must answer during an upgrade, and can' },
  ]);
});

test('a webhook without an endpoint is a blocker', async () => {
  expect(await ask(configuration())).toEqual([
    {
      state: 'blocker',
      object: 'MutatingWebhookConfiguration inject',
      message:
        'no endpoint of Service mesh/inject is ready for webhook inject.example.com, which must allow pods or other objects of an upgrade, also in kube-system',
      cure: 'repair what serves the webhook, or delete the configuration if nothing serves it any more',
    },
  ]);
});

test('an endpoint that is not ready does not serve a webhook', async () => {
  const away = slice('w1') as { endpoints: { conditions: { ready: boolean } }[] };
  for (const { conditions } of away.endpoints) conditions.ready = false;
  expect(await ask(configuration(), away)).toEqual([
    expect.objectContaining({
      state: 'blocker',
      message: expect.stringContaining('no endpoint of Service mesh/inject is ready') as string,
    }),
  ]);
});

test('a webhook on one node that its own pod needs is a blocker', async () => {
  expect(await ask(configuration(), slice('w1'))).toEqual([
    expect.objectContaining({
      state: 'blocker',
      message: expect.stringContaining(
        'and the pod that would serve it again needs it, too',
      ) as string,
      cure: 'run a replica on another node, and leave the namespace mesh out with its namespaceSelector',
    }),
  ]);
});

const OTHERS = {
  namespaceSelector: {
    matchExpressions: [
      { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['mesh', 'kube-system'] },
    ],
  },
};
test('a webhook on one node that its own pod does not need is a warning', async () => {
  const found = await ask(configuration(OTHERS), slice('w1'));
  expect(found).toEqual([
    expect.objectContaining({
      state: 'warning',
      message: expect.stringContaining(
        'must allow pods or other objects of an upgrade in app; while',
      ) as string,
    }),
  ]);
});

test('a webhook without an endpoint whose matchConditions may leave objects out is a warning', async () => {
  const matchConditions = [{ name: 'x', expression: 'false' }];
  expect(await ask(configuration({ matchConditions }))).toEqual([
    expect.objectContaining({ state: 'warning' }),
  ]);
});

test.each<[string, Partial<Webhook>]>([
  ['may fail', { failurePolicy: 'Ignore' }],
  ['is about other kinds of the core group', { rules: [{ ...RULE, resources: ['secrets'] }] }],
  [
    'is about all kinds of another group',
    { rules: [{ ...RULE, apiGroups: ['policy'], resources: ['*'] }] },
  ],
  ['is about deletions', { rules: [{ ...RULE, operations: ['DELETE'] }] }],
  [
    'is about another kind',
    { rules: [{ ...RULE, apiGroups: ['example.com'], resources: ['things'] }] },
  ],
  ['has a URL outside of the cluster', { clientConfig: {} }],
  ['covers no namespace that exists', { namespaceSelector: { matchLabels: { none: 'x' } } }],
])('a webhook that %s has no effect on an upgrade', async (_title, more) => {
  expect(await ask(configuration(more))).toEqual([expect.objectContaining({ state: 'ok' })]);
});

test.each([
  [['nodes'], 'UPDATE', ['']],
  [['*'], '*', ['*']],
  [['*/*'], 'CREATE', ['']],
  [['pods/eviction'], 'CREATE', ['']],
  [['leases'], 'UPDATE', ['coordination.k8s.io']],
  [['jobs'], 'CREATE', ['batch']],
  [['nodes/status'], 'UPDATE', ['']],
  [['machinedeployments'], 'CREATE', ['cluster.k8s.io']],
])('a webhook about %j with %s must answer', async (resources, operation, apiGroups) => {
  const rules = [{ apiGroups, operations: [operation], resources }];
  expect(await ask(configuration({ rules }))).toEqual([
    expect.objectContaining({ state: 'blocker' }),
  ]);
});

test('a caBundle without a certificate that can be read is unknown', async () => {
  const caBundle = Buffer.from('none').toString('base64');
  const clientConfig = { caBundle, service: { name: 'inject', namespace: 'mesh' } };
  expect(await ask(configuration({ clientConfig }), slice('w1', 'w2'))).toEqual([
    expect.objectContaining({ state: 'unknown' }),
  ]);
  expect(NOW).toBeGreaterThan(0);
});

test('webhooks that the user may not read are unknown', async () => {
  const forbidden = ['ValidatingWebhookConfiguration'];
  expect(await checkWebhooks(readyContext({ forbidden }))).toEqual([
    { state: 'unknown', message: 'you may not read validatingwebhookconfigurations' },
  ]);
});

/** Tests the check of admission webhooks. */
import { expect, test } from 'vitest';
import { namespaceObject, readyContext } from '../../../test/support/ready/world.ts';
import { checkWebhooks, type Webhook } from './webhooks.ts';

const UPDATE = { operations: ['UPDATE'] };
const RULE = { apiGroups: [''], operations: ['CREATE'], resources: ['pods'] };
const rule = (resource: string, more: object = {}) => ({ ...RULE, resources: [resource], ...more });
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

const service = (spec: object): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'inject', namespace: 'mesh' },
  spec,
});

test('a webhook whose Service does not exist is a blocker', async () => {
  expect(await ask(configuration())).toEqual([
    expect.objectContaining({
      state: 'blocker',
      message:
        'there is no Service mesh/inject for webhook inject.example.com, which must allow Pods, also in kube-system',
    }),
  ]);
});

test('a webhook of a Service with an external name is ok, because such a Service has no endpoints', async () => {
  const external = service({ type: 'ExternalName', externalName: 'hooks.example.com' });
  expect(await ask(configuration(), external)).toEqual([expect.objectContaining({ state: 'ok' })]);
});

test('a webhook without an endpoint is a question without an answer if its Service cannot be read', async () => {
  const objects = [...SPACES, configuration()];
  expect(await checkWebhooks(readyContext({ objects, forbidden: ['Service'] }))).toEqual([
    expect.objectContaining({
      state: 'unknown',
      message: expect.stringContaining('whether something serves webhook inject') as string,
    }),
  ]);
});

test('a webhook without an endpoint is a blocker', async () => {
  expect(await ask(configuration(), service({}))).toEqual([
    {
      state: 'blocker',
      object: 'MutatingWebhookConfiguration inject',
      message:
        'no endpoint of Service mesh/inject is ready for webhook inject.example.com, which must allow Pods, also in kube-system',
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
      message: expect.stringContaining('must allow Pods in app; while') as string,
    }),
  ]);
});

test.each<[string, Partial<Webhook>]>([
  ['matchConditions', { matchConditions: [{ name: 'x', expression: 'false' }] }],
  ['objectSelector', { objectSelector: { matchLabels: { 'old.example.com/inject': 'true' } } }],
])(
  'a webhook without an endpoint whose %s may leave objects out is a warning',
  async (field, more) => {
    expect(await ask(configuration(more))).toEqual([
      expect.objectContaining({
        state: 'warning',
        message: expect.stringMatching(
          new RegExp(`, unless its ${field} leaves them out$`),
        ) as string,
      }),
    ]);
    expect(await ask(configuration({ objectSelector: {} }))).toEqual([
      expect.objectContaining({ state: 'blocker' }),
    ]);
  },
);

test('a webhook on one node that is not about pods is a warning, because its own pod does not need it', async () => {
  const rules = [rule('machines', { apiGroups: ['cluster.x-k8s.io'], apiVersions: ['v1beta2'] })];
  expect(await ask(configuration({ rules }), slice('w1'))).toEqual([
    expect.objectContaining({
      state: 'warning',
      message: expect.stringContaining('which must allow Machines, also in kube-system;') as string,
    }),
  ]);
});

test.each<[string, Partial<Webhook>]>([
  ['may fail', { failurePolicy: 'Ignore' }],
  ['is about other kinds of the core group', { rules: [{ ...RULE, resources: ['secrets'] }] }],
  [
    'is about all kinds of another group',
    { rules: [{ ...RULE, apiGroups: ['policy'], resources: ['*'] }] },
  ],
  ['is about deletions of Nodes', { rules: [rule('nodes', { operations: ['DELETE'] })] }],
  ['is about commands in pods', { rules: [rule('pods/exec', { operations: ['*'] })] }],
  ['is about containers for debugging', { rules: [rule('pods/ephemeralcontainers', UPDATE)] }],
  [
    'is about the scale of everything',
    { rules: [rule('*/scale', { apiGroups: ['*'], ...UPDATE })] },
  ],
  ['is about pods without a namespace', { rules: [rule('pods', { scope: 'Cluster' })] }],
  [
    'is about a version of Jobs that nobody serves',
    { rules: [rule('jobs', { apiGroups: ['batch'], apiVersions: ['v2alpha1'] })] },
  ],
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
  [['pods/*'], 'CREATE', ['']],
  [['*/status'], 'UPDATE', ['']],
  [['pods'], 'DELETE', ['']],
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
});

test('webhooks that the user may not read are unknown', async () => {
  const forbidden = ['ValidatingWebhookConfiguration'];
  expect(await checkWebhooks(readyContext({ forbidden }))).toEqual([
    { state: 'unknown', message: 'you may not read validatingwebhookconfigurations' },
  ]);
});

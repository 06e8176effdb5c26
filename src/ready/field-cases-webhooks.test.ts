/** Tests what `refit ready` says about admission webhooks, before upgrades that broke for others. */
import { expect, test } from 'vitest';
import { namespaceObject, readyContext } from '../../test/support/ready/world.ts';
import { checkWebhooks } from './checks/webhooks.ts';

const SPACES = [
  namespaceObject('kube-system'),
  namespaceObject('policies'),
  namespaceObject('app'),
];
const webhook = (rule: object, more: object = {}): object => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'policies' },
  webhooks: [
    {
      name: 'check.policies.example.com',
      failurePolicy: 'Fail',
      clientConfig: { service: { name: 'check', namespace: 'policies' } },
      rules: [{ apiVersions: ['v1'], operations: ['UPDATE'], ...rule }],
      ...more,
    },
  ],
});
const served = (...nodeNames: string[]): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: 'check',
    namespace: 'policies',
    labels: { 'kubernetes.io/service-name': 'check' },
  },
  endpoints: nodeNames.map((nodeName) => ({ nodeName, conditions: { ready: true } })),
});
const webhooks = async (...objects: object[]) =>
  await checkWebhooks(readyContext({ objects: [...SPACES, ...objects] }));

test.each<[string, object]>([
  ['Namespaces, which RKE2 annotates', { apiGroups: [''], resources: ['namespaces'] }],
  ['ConfigMaps, which kubeadm writes', { apiGroups: [''], resources: ['configmaps'] }],
  ['DaemonSets, such as kube-proxy', { apiGroups: ['apps'], resources: ['daemonsets'] }],
  ['everything, as policy engines do', { apiGroups: ['*'], resources: ['*/*'] }],
])('a webhook that nothing serves stops a new server if it is about %s', async (_title, rule) => {
  expect(await webhooks(webhook(rule))).toEqual([
    {
      state: 'blocker',
      object: 'ValidatingWebhookConfiguration policies',
      message: expect.stringContaining(
        'there is no Service policies/check for webhook check.policies.example.com',
      ) as string,
      cure: expect.stringContaining('repair what serves the webhook') as string,
    },
  ]);
  expect(await webhooks(webhook(rule), served('w1', 'w2'))).toEqual([
    { state: 'ok', message: '1 webhook must answer during an upgrade, and can' },
  ]);
});

test('a webhook for Namespaces that leaves out kube-system does not stop a new server', async () => {
  const key = 'kubernetes.io/metadata.name';
  const namespaceSelector = {
    matchExpressions: [{ key, operator: 'NotIn', values: ['kube-system'] }],
  };
  const namespaces = { apiGroups: [''], resources: ['namespaces'] };
  expect(await webhooks(webhook(namespaces, { namespaceSelector }))).toEqual([
    expect.objectContaining({ state: 'ok' }),
  ]);
  // The pods of other namespaces are created again after a drain, so they need the webhook.
  const pods = { apiGroups: [''], resources: ['pods'] };
  expect(await webhooks(webhook(pods, { namespaceSelector }))).toEqual([
    expect.objectContaining({ state: 'blocker' }),
  ]);
});

/** Tests how the check of admission webhooks appears in the plan of an upgrade with kubeadm. */
import { expect, test } from 'vitest';
import { NOW, readyContext } from '../../../../test/support/ready/world.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { StatusError, TransportError } from '../../../kube/status-error.ts';
import { askingOf } from '../../../ready/asking.ts';
import { webhookFindings } from './webhooks.ts';

const CONFIGURATION = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'guard' },
  webhooks: [
    {
      name: 'guard.example.com',
      rules: [{ apiGroups: [''], operations: ['CREATE'], resources: ['pods'] }],
      namespaceSelector: { matchLabels: { guarded: 'true' } },
      clientConfig: { service: { namespace: 'guard', name: 'guard' } },
    },
  ],
};
const OBJECTS = [
  CONFIGURATION,
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'app', labels: { guarded: 'true' } } },
];
const served = (nodeName: string): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: 'guard-1',
    namespace: 'guard',
    labels: { 'kubernetes.io/service-name': 'guard' },
  },
  endpoints: [{ addresses: [], nodeName, conditions: { ready: true } }],
});

test('a webhook that nobody serves is a warning with its object and its cure', async () => {
  expect(await webhookFindings(readyContext({ objects: OBJECTS }), NOW)).toEqual([
    {
      finding: {
        rule: 'webhook',
        severity: 'warn',
        message:
          'ValidatingWebhookConfiguration guard: there is no Service guard/guard for webhook guard.example.com, which must allow Pods in app; repair what serves the webhook, or delete the configuration if nothing serves it any more',
      },
    },
  ]);
});

test('a webhook whose CA certificate cannot be read is a warning without a cure', async () => {
  const [webhook] = CONFIGURATION.webhooks;
  const webhooks = [{ ...webhook, clientConfig: { url: 'https://guard', caBundle: 'eA==' } }];
  const found = await webhookFindings(
    readyContext({ objects: [{ ...CONFIGURATION, webhooks }] }),
    NOW,
  );
  expect(found.map(({ finding }) => finding.message)).toEqual([
    'ValidatingWebhookConfiguration guard: the caBundle of webhook guard.example.com has no certificate that can be read',
  ]);
});

test('a webhook on one node names the node, because only its drain matters', async () => {
  const [found] = await webhookFindings(readyContext({ objects: [...OBJECTS, served('w1')] }), NOW);
  expect(found?.only).toBe('w1');
  expect(found?.finding).toMatchObject({ rule: 'webhook', severity: 'warn' });
});

function refusing(refusal: Error): Pick<KubeClient, 'listAll'> {
  return { listAll: async () => await Promise.reject(refusal) };
}

async function findingsWith(error: Error) {
  const { signal } = new AbortController();
  const asking = askingOf(
    refusing(error) as KubeClient,
    signal,
    (each) => !(each instanceof StatusError),
  );
  return await webhookFindings(asking, NOW);
}

test.each([
  [
    'without the right to look',
    { code: 403, reason: 'Forbidden', message: 'no' },
    'webhooks are not checked: you may not read validatingwebhookconfigurations.admissionregistration.k8s.io; apply what `refit install rights kubeadm` prints',
  ],
  [
    'with an API server in memory',
    { code: 501, reason: 'NotImplemented', message: 'not here' },
    'webhooks are not checked: validatingwebhookconfigurations.admissionregistration.k8s.io: not here',
  ],
])('%s, the plan says that nobody looked', async (_, status, message) => {
  const found = await findingsWith(new StatusError({ kind: 'Status', ...status }));
  expect(found[0]?.finding).toEqual({ rule: 'webhook', severity: 'warn', message });
});

test('an API server that does not answer is no finding, so that the survey begins again', async () => {
  const away = new TransportError('socket hang up');
  await expect(findingsWith(away)).rejects.toThrow(away);
});

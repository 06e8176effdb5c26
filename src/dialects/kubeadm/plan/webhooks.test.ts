/** Shows which admission webhooks are reported because they could block an upgrade. */
import { expect, test } from 'vitest';
import type { KubeClient } from '../../../kube/client.ts';
import type { EndpointSlice, KubeObject, Resource } from '../../../kube/resources.ts';
import { StatusError, TransportError } from '../../../kube/status-error.ts';
import { warn } from '../../../versions/findings.ts';
import { webhookFindings } from './webhooks.ts';

const NO_ABORT = new AbortController().signal;
const CORE = { apiGroups: [''], operations: ['CREATE'], resources: ['pods'] };
const SERVICE = { service: { namespace: 'guard', name: 'guard' } };
const HOOK = { name: 'guard.example.com', rules: [CORE], clientConfig: SERVICE };
const SILENT =
  'no endpoint of service guard/guard is ready for webhook guard.example.com, which must allow pods, Nodes or Machines: fix the service first';
const ALONE =
  'only node w1 serves webhook guard.example.com, which must allow pods, Nodes or Machines: while that node is drained, no node serves the webhook; run a replica on another node';

/**
 * Returns a client with one endpoint for each given node name. A `-` before the name means that the endpoint is not
 * ready.
 */
function clientWith(webhook: object, endpoints: readonly string[]): KubeClient {
  const slice: EndpointSlice = {
    metadata: { name: 'guard-1' },
    endpoints: endpoints.map((name) => ({
      addresses: [],
      nodeName: name.replace('-', ''),
      conditions: { ready: !name.startsWith('-') },
    })),
  };
  const items = (kind: string): KubeObject[] => {
    if (kind === 'EndpointSlice') return [slice];
    const configuration = { metadata: { name: 'guard' }, webhooks: [webhook] };
    return kind === 'ValidatingWebhookConfiguration' ? [configuration] : [];
  };
  const listAll = async ({ kind }: Resource) =>
    await Promise.resolve({ items: items(kind), metadata: {} });
  return { listAll } as unknown as KubeClient;
}

test.each<[string, object, readonly string[], string | undefined]>([
  ['nobody answers', HOOK, [], SILENT],
  ['nobody who is ready answers', HOOK, ['-w1', '-w2'], SILENT],
  [
    'Refit warns about a webhook if all its ready endpoints are on one node',
    HOOK,
    ['w1', 'w1', '-w2'],
    ALONE,
  ],
  ['two nodes answer', HOOK, ['w1', 'w2'], undefined],
  ['it may fail', { ...HOOK, failurePolicy: 'Ignore' }, [], undefined],
  [
    'it is about everything',
    { ...HOOK, rules: [{ apiGroups: ['*'], operations: ['*'], resources: ['*/*'] }] },
    [],
    SILENT,
  ],
  [
    "it is about Nodes' status",
    { ...HOOK, rules: [{ ...CORE, operations: ['UPDATE'], resources: ['nodes/status'] }] },
    [],
    SILENT,
  ],
  [
    'Refit warns about a webhook for Machines if no endpoint of its service is ready',
    {
      ...HOOK,
      rules: [{ ...CORE, apiGroups: ['cluster.k8s.io'], resources: ['machinedeployments'] }],
    },
    [],
    SILENT,
  ],
  [
    'it is about something else',
    { ...HOOK, rules: [{ ...CORE, apiGroups: ['apps'], resources: ['*'] }] },
    [],
    undefined,
  ],
  [
    'it is about other core kinds',
    { ...HOOK, rules: [{ ...CORE, resources: ['secrets'] }] },
    [],
    undefined,
  ],
  [
    'it is about who ends pods',
    { ...HOOK, rules: [{ ...CORE, operations: ['DELETE', 'CONNECT'] }] },
    [],
    undefined,
  ],
  [
    'it is outside of the cluster',
    { ...HOOK, clientConfig: { url: 'https://example.com' } },
    [],
    undefined,
  ],
])('%s', async (_, webhook, endpoints, expected) => {
  const findings = await webhookFindings(clientWith(webhook, endpoints), NO_ABORT);
  expect(findings).toEqual(
    expected === undefined
      ? []
      : [{ finding: warn('webhook', expected), ...(expected === ALONE ? { only: 'w1' } : {}) }],
  );
});

test.each([
  [
    'without the right to look',
    { code: 403, reason: 'Forbidden', message: 'no' },
    'no; apply what `refit install rights kubeadm` prints',
  ],
  [
    'an API server in memory',
    { code: 501, reason: 'NotImplemented', message: 'not here' },
    'not here',
  ],
])('%s: the plan says that nobody looked', async (_, status, why) => {
  const refused = new StatusError({ kind: 'Status', ...status });
  const client = { listAll: async () => await Promise.reject(refused) } as unknown as KubeClient;
  expect(await webhookFindings(client, NO_ABORT)).toEqual([
    { finding: warn('webhook', `webhooks are not checked: ${why}`) },
  ]);
});

test('an API server that does not answer is no finding', async () => {
  const away = new TransportError('socket hang up');
  const client = { listAll: async () => await Promise.reject(away) } as unknown as KubeClient;
  await expect(webhookFindings(client, NO_ABORT)).rejects.toThrow(away);
});

/** Tests the client on a real API server: what a node may watch, how Events are counted, the error for an expired user. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { eventRecorder } from '../../src/kube/event-recorder.ts';
import { events, nodes, type Resource } from '../../src/kube/resources.ts';
import { describeProblem, isForbidden, isNotFound } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { tryList } from '../../src/kube/try-list.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { startLoopbackProxy } from '../agent/loopback-proxy.ts';
import { testUnless } from '../support/left-out.ts';
import { controlPlane, expiredKubeconfig, kubeconfigFor, type User } from './control-plane.ts';
import { WHY_READS_OTHER_NODES } from './since.ts';

const NODE = 'client-test';

async function clientOf(user: User): Promise<KubeClient> {
  const client = createClient(await loadClusterConfig({ path: await kubeconfigFor(user) }));
  onTestFinished(() => client.close());
  return client;
}

let admin: KubeClient;

beforeAll(async () => {
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await admin.create(nodes, { metadata: { name: NODE, labels: { 'kubernetes.io/os': 'linux' } } });
});
afterAll(async () => {
  await admin.delete(nodes, NODE);
  admin.close();
});

test('with the rights of a node, a client can watch its Node object', async () => {
  const client = await clientOf({ node: NODE });
  const informer = createInformer(client, nodes, { fieldSelector: `metadata.name=${NODE}` });
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  await informer.whenSynced();
  await admin.patch(nodes, NODE, { metadata: { annotations: { seen: 'yes' } } }, { type: 'merge' });
  await expect.poll(() => informer.get(NODE)?.metadata.annotations?.['seen']).toBe('yes');
});

testUnless(WHY_READS_OTHER_NODES)(
  'with the rights of a node, a client cannot list all Nodes',
  async () => {
    const client = await clientOf({ node: NODE });
    const refused = await client.list(nodes).catch(describeProblem);
    expect(refused).toMatchObject({ code: 'REFIT_FORBIDDEN' });
  },
);

test('whether a kind may be listed, is known without an object of it', async () => {
  const client = await clientOf({ node: NODE });
  const fieldSelector = `metadata.name=${NODE}`;
  expect(await tryList(admin, nodes)).toBe(true);
  expect(await tryList(client, nodes, { fieldSelector })).toBe(true);
  expect(await tryList(admin, nodes, { fieldSelector: 'spec.unschedulable!=true' })).toBe(true);
  expect(await tryList(client, nodes).catch(isForbidden)).toBe(true);
  expect(await tryList(admin, { ...nodes, plural: 'others' }).catch(isNotFound)).toBe(true);
});

test('through the proxy of a kubeconfig, with the certificate of its user', async () => {
  const { port } = controlPlane();
  await using proxy = await startLoopbackProxy({ names: { [`127.0.0.1:${port}`]: port } });
  const config = await loadClusterConfig({ path: await kubeconfigFor({ node: NODE }) });
  const client = createClient({ ...config, proxyUrl: `http://${proxy.host}` });
  onTestFinished(() => client.close());
  expect(await client.get(nodes, NODE)).toMatchObject({ metadata: { name: NODE } });
  expect(proxy.asked).toEqual([`CONNECT 127.0.0.1:${port}`]);
});

test('what happens again is counted on the same event', async () => {
  const node = await admin.get(nodes, NODE);
  const recorder = eventRecorder({ client: admin, component: 'refit-test' });
  for (let count = 0; count < 3; count++) {
    recorder.record(node, { type: 'Warning', reason: 'Tested', message: 'it was tested' });
    await recorder.flush();
  }
  const selector = `involvedObject.kind=Node,involvedObject.name=${NODE},reason=Tested`;
  const { items } = await admin.list(events, { namespace: 'default', fieldSelector: selector });
  expect(items.map(({ count, message, type }) => ({ count, message, type }))).toEqual([
    { count: 3, message: 'it was tested', type: 'Warning' },
  ]);
});

test('an expired certificate is named, not only its refusal', async () => {
  const client = createClient(await loadClusterConfig({ path: await expiredKubeconfig() }));
  onTestFinished(() => client.close());
  const error = await client.list(nodes).catch(describeProblem);
  expect(error).toMatchObject({
    code: 'REFIT_TLS',
    message: expect.stringContaining('the client certificate: it expired'),
  });
});

test('a kind that is not installed is told apart from an object that is missing', async () => {
  const missing: Resource = {
    group: 'nowhere.refit.dev',
    version: 'v1',
    kind: 'Ship',
    plural: 'ships',
    namespaced: false,
  };
  expect(await admin.list(missing).catch(describeProblem)).toMatchObject({ code: 'REFIT_NO_CRD' });
  expect(await admin.get(nodes, 'nowhere').catch(describeProblem)).toMatchObject({
    code: 'REFIT_INTERNAL',
  });
});

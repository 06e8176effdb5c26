/**
 * Tests connections to an API server through the proxy of a kubeconfig, and the errors if the proxy
 * fails.
 */
import { expect, onTestFinished, test } from 'vitest';
import { startHttpsMirror } from '../../../test/agent/https-mirror.ts';
import {
  type LoopbackProxy,
  type ProxyTraits,
  startLoopbackProxy,
} from '../../../test/agent/loopback-proxy.ts';
import { sendJson } from '../../../test/faults/stub-server.ts';
import type { KubeClient } from '../client.ts';
import { nodes } from '../resources.ts';
import { createClient } from './http-client.ts';

/** Starts an API server that only the proxy can reach. Only this server has a certificate for its name. */
async function behindProxy(
  traits: Partial<ProxyTraits> = {},
): Promise<{ client: KubeClient; proxy: LoopbackProxy }> {
  const mirror = await startHttpsMirror(
    (_request, response) => sendJson(response, 200, { metadata: { name: 'n1' } }),
    ['cluster.example'],
  );
  const proxy = await startLoopbackProxy({
    names: { 'cluster.example:6443': mirror.server.port },
    ...traits,
  });
  const client = createClient({
    server: 'https://cluster.example:6443',
    certificateAuthority: { file: mirror.trust.SSL_CERT_FILE },
    proxyUrl: `http://me:a%20b@${proxy.host}`,
    user: {},
    namespace: 'default',
    files: [],
  });
  onTestFinished(async () => {
    client.close();
    await proxy[Symbol.asyncDispose]();
    await mirror[Symbol.asyncDispose]();
  });
  return { client, proxy };
}

test('the proxy opens one tunnel for many requests, and TLS goes on behind it', async () => {
  const { client, proxy } = await behindProxy();
  const first = new AbortController();
  await client.get(nodes, 'n1', { abort: first.signal });
  first.abort();
  expect(await client.get(nodes, 'n1')).toMatchObject({ metadata: { name: 'n1' } });
  expect(proxy.asked).toEqual(['CONNECT cluster.example:6443']);
  expect(proxy.credentials).toEqual([`Basic ${Buffer.from('me:a b').toString('base64')}`]);
  client.close();
  await expect.poll(() => proxy.open()).toBe(0);
});

test('a proxy that refuses says so, and nothing was sent', async () => {
  const { client } = await behindProxy({ refuses: 407 });
  await expect(client.create(nodes, { metadata: { name: 'n1' } })).rejects.toMatchObject({
    name: 'TransportError',
    maybeApplied: false,
    cause: { message: 'the proxy answered 407' },
  });
});

test('a client that is closed waits for no proxy', async () => {
  const { client, proxy } = await behindProxy({ refuses: 'no-answer' });
  const asked = client.get(nodes, 'n1').catch((error: unknown) => error);
  await expect.poll(() => proxy.open()).toBe(1);
  client.close();
  expect(await asked).toMatchObject({
    name: 'TransportError',
    cause: { message: 'the client was closed' },
  });
  await expect.poll(() => proxy.open()).toBe(0);
});

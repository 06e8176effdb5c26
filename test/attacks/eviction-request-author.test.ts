/**
 * Tests that a user who may create EvictionRequests or pods cannot use the rights of Refit: Refit makes each request
 * from the identity of a pod alone, and what a request says about its node is only ever the name of a Node.
 */
import { expect, onTestFinished, test } from 'vitest';
import { evictionRequests, requestFor } from '../../src/drain/eviction-request-objects.ts';
import { withdrawLeftRequests } from '../../src/drain/left-eviction-requests.ts';
import type { Pod } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { silentLogger } from '../../src/util/log.ts';
import { sendJson, startStubServer, whenReady } from '../faults/stub-server.ts';

const HOSTILE: Pod = {
  metadata: {
    name: 'p',
    namespace: 'shop',
    uid: 'u1',
    labels: { 'app.kubernetes.io/managed-by': 'somebody' },
    annotations: { 'upgrade.refit.dev/node': 'other' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'other', uid: 'u2' }],
  },
  spec: { nodeName: 'w1' },
};

test('no label, annotation or owner of a pod comes into the EvictionRequest for it', () => {
  const plain: Pod = { metadata: { name: 'p', namespace: 'shop', uid: 'u1' } };
  expect(requestFor(HOSTILE, 'w1')).toEqual(requestFor(plain, 'w1'));
  expect(requestFor(HOSTILE, 'w1')).toMatchObject({
    metadata: { namespace: 'shop' },
    spec: { target: { pod: { name: 'p', uid: 'u1' } } },
  });
});

test.each(['../namespaces/refit-system/secrets/s', 'w1/status', 'w1?watch=true', '%2e%2e'])(
  'an EvictionRequest that names the node %s makes Refit read nothing but a Node',
  async (node) => {
    const script = whenReady(({ url }, response) => {
      const items = [requestFor(HOSTILE, node)];
      if (/evictionrequests/.test(url)) sendJson(response, 200, { metadata: {}, items });
      else sendJson(response, 403, { kind: 'Status', code: 403, reason: 'Forbidden' });
    });
    const server = await startStubServer(script);
    onTestFinished(async () => await server[Symbol.asyncDispose]());
    const client = createClient(server.config);
    onTestFinished(() => client.close());
    const parts = { client, log: silentLogger, abort: new AbortController().signal };
    await withdrawLeftRequests({ ...parts, onFailures: () => undefined });
    const others = server.requests
      .map(({ method, url }) => `${method} ${url.split('?')[0]}`)
      .filter((asked) => !asked.includes(`/${evictionRequests.plural}`));
    const asked = `GET /api/v1/nodes/${encodeURIComponent(node)}`;
    // Before Refit believes the first refusal, it asks whether the server is ready, and repeats the request.
    expect(others).toEqual([asked, 'GET /readyz', asked]);
  },
);

/** Tests which API servers are asked. */
import { expect, test } from 'vitest';
import { sendJson, startStubServer, whenReady } from '../../test/faults/stub-server.ts';
import { createClient } from '../kube/transport/http-client.ts';
import { serversOf } from './api-servers.ts';
import { askingOf } from './asking.ts';

/** Resolves with the answers to `/version` if the API server answers the question about EndpointSlices like this. */
async function answersWith(status: number, body: (port: number) => object) {
  await using server = await startStubServer(
    whenReady(({ url }, response) => {
      if (url === '/version') sendJson(response, 200, { gitVersion: 'v1.36.3' });
      else sendJson(response, status, body(server.port));
    }),
  );
  using client = createClient(server.config);
  const abort = new AbortController().signal;
  const ask = serversOf({ config: server.config, asking: askingOf(client, abort), abort });
  return { own: new URL(server.config.server).host, answers: await ask('/version') };
}

const slice = (port: number, ...addresses: string[]): object => ({
  metadata: {},
  items: [
    {
      metadata: {
        name: 'kubernetes',
        namespace: 'default',
        labels: { 'kubernetes.io/service-name': 'kubernetes' },
      },
      endpoints: addresses.map((address) => ({ addresses: [address] })),
      ports: [{ port }],
    },
  ],
});
const VERSION = { kind: 'answer', value: '{"gitVersion":"v1.36.3"}' };

test('each API server that the EndpointSlices name is asked', async () => {
  const { answers } = await answersWith(200, (port) => slice(port, '127.0.0.1', '127.0.0.2'));
  expect(answers.map(({ server }) => server)).toEqual(['127.0.0.1', '127.0.0.2']);
  expect(answers[0]?.answer).toEqual(VERSION);
});

test('a single API server is asked as the kubeconfig says', async () => {
  const { own, answers } = await answersWith(200, (port) => slice(port, '10.0.0.1'));
  expect(answers).toEqual([{ server: own, answer: VERSION }]);
});

test('if the EndpointSlices cannot be read, the answer of other API servers is unknown', async () => {
  const { own, answers } = await answersWith(403, () => ({
    kind: 'Status',
    status: 'Failure',
    reason: 'Forbidden',
    code: 403,
  }));
  expect(answers).toEqual([
    { server: own, answer: VERSION },
    {
      server: `other than ${own}`,
      answer: {
        kind: 'unknown',
        why: 'Refit cannot find out whether there is one (you may not read endpointslices.discovery.k8s.io)',
      },
    },
  ]);
});

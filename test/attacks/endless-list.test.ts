/**
 * Tests lists whose small pages never end. An API server may send them to fill the memory, or to keep the caller busy
 * for ever.
 */
import { expect, test } from 'vitest';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { sendJson, startStubServer } from '../faults/stub-server.ts';

const NODE = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', resourceVersion: '1' } };

test.each([
  ['with objects', 500, 21],
  ['without any', 0, 1001],
])('pages %s end with an error', async (_name, length, most) => {
  let pages = 0;
  await using server = await startStubServer((_request, response) => {
    pages++;
    const metadata = { resourceVersion: '1', continue: `page ${pages}` };
    sendJson(response, 200, {
      kind: 'NodeList',
      apiVersion: 'v1',
      metadata,
      items: Array.from({ length }, () => NODE),
    });
  });
  const client = createClient(server.config, { mostItems: 10_000 });
  try {
    await expect(client.listAll(nodes)).rejects.toThrow('the list of nodes does not end');
    expect(pages).toBeLessThanOrEqual(most);
  } finally {
    client.close();
  }
});

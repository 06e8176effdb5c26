/**
 * Tests that a client in the server's process gets the same answers as a client at a socket, and that it can watch the
 * objects that it selects.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { leases, nodes } from '../../src/kube/resources.ts';
import { isConflict, isNotFound, StatusError } from '../../src/kube/status-error.ts';
import { clientOver, createClient } from '../../src/kube/transport/http-client.ts';
import { type ApiServer, startApiServer } from './api-server.ts';

let server: ApiServer;

beforeEach(async () => {
  server = await startApiServer();
});

afterEach(async () => {
  await server.stop();
});

test('objects and lists are the same through both', async () => {
  const local = clientOver(server.caller);
  const remote = createClient({ server: server.url, user: {}, namespace: 'default', files: [] });
  const made = await local.create(nodes, { metadata: { name: 'a', annotations: { a: 'ü' } } });
  expect(await remote.get(nodes, 'a')).toEqual(made);
  const changed = await remote.replace(nodes, { ...made, spec: { unschedulable: true } });
  expect(await local.get(nodes, 'a')).toEqual(changed);
  expect(await local.list(nodes, { labelSelector: 'a=b' })).toEqual(
    await remote.list(nodes, { labelSelector: 'a=b' }),
  );
  expect(await local.raw('/readyz')).toEqual({ status: 200, body: 'ok' });
  remote.close();
});

test('what the server refuses is refused', async () => {
  const local = clientOver(server.caller);
  const made = await local.create(nodes, { metadata: { name: 'a' } });
  await local.replace(nodes, { ...made, spec: { unschedulable: true } });
  const late = local.replace(nodes, { ...made, spec: {} });
  await expect(late).rejects.toSatisfy(isConflict);
  await expect(local.get(nodes, 'b')).rejects.toSatisfy(isNotFound);
  const odd = local.watch(nodes, { labelSelector: '=' })[Symbol.asyncIterator]();
  await expect(odd.next()).rejects.toBeInstanceOf(StatusError);
});

test('a watch of one object is told of no other, and ends with its signal', async () => {
  const local = clientOver(server.caller);
  for (const name of ['a', 'b']) await local.create(nodes, { metadata: { name } });
  const stop = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    const options = {
      fieldSelector: 'metadata.name=a',
      sendInitialEvents: true,
      abort: stop.signal,
    };
    for await (const { type, object } of local.watch(nodes, options)) {
      if (type !== 'BOOKMARK' && type !== 'ERROR') seen.push(`${type} ${object.metadata.name}`);
    }
  })();
  await vi.waitFor(() => expect(seen).toEqual(['ADDED a']), 60_000);
  for (const name of ['b', 'a', 'b']) {
    await local.replace(nodes, {
      ...(await local.get(nodes, name)),
      spec: { providerID: `${seen.length}` },
    });
  }
  await local.delete(nodes, 'b');
  await local.delete(nodes, 'a');
  await vi.waitFor(() => expect(seen).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a']), 60_000);
  stop.abort();
  await watching;
});

test('a watch whose signal has aborted already ends at once', async () => {
  const options = { resourceVersion: '1', abort: AbortSignal.abort() };
  const watching = clientOver(server.caller).watch(nodes, options)[Symbol.asyncIterator]();
  await expect(watching.next()).resolves.toMatchObject({ done: true });
});

test('in a namespace too, a watch of one object is told of no other of that name', async () => {
  const local = clientOver(server.caller);
  const stop = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    const options = { namespace: 'default', fieldSelector: 'metadata.name=a', abort: stop.signal };
    for await (const event of local.watch(leases, options)) {
      if (event.type === 'ADDED') seen.push(event.object.metadata.namespace ?? '');
    }
  })();
  for (const namespace of ['kube-system', 'default']) {
    await local.create(leases, { metadata: { name: 'a', namespace } }, { namespace });
  }
  await vi.waitFor(() => expect(seen).toEqual(['default']), 60_000);
  stop.abort();
  await watching;
});

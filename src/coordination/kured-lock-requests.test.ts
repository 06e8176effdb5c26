/** Tests the requests with which Refit looks for Kured and changes its lock, and the advice if Kured blocks Refit. */
import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { later, T0 } from '../../test/support/clock/times.ts';
import { daemonSets, type KubeObject } from '../kube/resources.ts';
import { kuredLock } from './kured-lock.ts';
import type { LockClient, Look } from './tool.ts';

const KEY = 'weave.works/kured-node-lock';
const ABORT = new AbortController().signal;
const LOOK: Look = { holder: 'refit/a', isOwn: () => false, now: T0, ageOf: () => 0, abort: ABORT };

function kured(container: object, lock?: object, name = 'kured'): KubeObject {
  const annotations = lock ? { [KEY]: JSON.stringify(lock) } : {};
  const spec = { template: { spec: { containers: [{ image: 'kured:1', ...container }] } } };
  return { metadata: { name, namespace: 'kube-system', annotations }, spec } as KubeObject;
}

/** Returns a client that records the options of each request. */
function recordingClient(api: MemoryApi): { client: LockClient; options: unknown[] } {
  const options: unknown[] = [];
  const { client } = api;
  const recording: Partial<LockClient> = {
    listAll: async (resource, more) => {
      options.push(more);
      return await client.listAll(resource, more);
    },
    get: async (resource, name, more) => {
      options.push(more);
      return await client.get(resource, name, more);
    },
    patch: async (resource, name, patch, more) => {
      options.push(more);
      return await client.patch(resource, name, patch, more);
    },
  };
  return { client: recording as LockClient, options };
}

test('the search for Kured ends when the check is aborted, and one request is enough', async () => {
  const api = new MemoryApi();
  api.put(daemonSets, kured({}));
  const { client, options } = recordingClient(api);
  await kuredLock.look(client, LOOK);
  expect(options).toEqual([{ abort: ABORT }]);
});

test('the search in the usual place ends when the check is aborted', async () => {
  const api = new MemoryApi();
  api.put(daemonSets, kured({}));
  api.before('list daemonsets', () => {
    throw refusal(403, 'Forbidden');
  });
  const { client, options } = recordingClient(api);
  await kuredLock.look(client, LOOK);
  expect(options).toEqual([{ abort: ABORT }, { namespace: 'kube-system', abort: ABORT }]);
});

test('a lock on another DaemonSet is read from its namespace, and changed there with a merge patch', async () => {
  const api = new MemoryApi();
  api.put(daemonSets, kured({ args: ['--ds-namespace=locks', '--ds-name=here'] }));
  const { spec: _spec, ...here } = kured({}, undefined, 'here') as KubeObject & { spec: unknown };
  api.put(daemonSets, { ...here, metadata: { ...here.metadata, namespace: 'locks' } });
  const { client, options } = recordingClient(api);
  const view = await kuredLock.look(client, LOOK);
  await view.take?.();
  expect(options).toEqual([
    { abort: ABORT },
    { namespace: 'locks', abort: ABORT },
    { namespace: 'locks', type: 'merge' },
  ]);
  expect(api.read(daemonSets, 'here').metadata.annotations?.[KEY]).toContain('refit/a');
});

test('if the API server fails, Refit does not look for Kured in the usual place alone', async () => {
  const api = new MemoryApi();
  api.put(daemonSets, kured({}));
  api.before('list daemonsets', () => {
    throw refusal(503, 'ServiceUnavailable');
  });
  await expect(kuredLock.look(api.client, LOOK)).rejects.toThrow('ServiceUnavailable');
});

test('without the right to list DaemonSets and without Kured in the usual place, the missing right is the problem', async () => {
  const api = new MemoryApi();
  api.before('list daemonsets', () => {
    throw refusal(403, 'Forbidden');
  });
  await expect(kuredLock.look(api.client, LOOK)).rejects.toThrow('Forbidden');
});

test.each<[string, object, object | undefined, string]>([
  [
    'does not show its place',
    { args: ['--ds-name'] },
    undefined,
    '--ds-namespace, --ds-name and --lock-annotation are in its args',
  ],
  [
    'is on a DaemonSet that does not exist',
    { args: ['--ds-name=other'] },
    undefined,
    '--ds-namespace and --ds-name of Kured name its DaemonSet',
  ],
  [
    'does not show how many nodes Kured reboots at once',
    { args: ['--concurrency=many'] },
    undefined,
    '--concurrency in its args is a number of at most 500',
  ],
  [
    'belongs to a node',
    {},
    { nodeID: 'w1' },
    `Kured has rebooted w1 and releases the lock, or, if Kured is gone, somebody runs kubectl -n kube-system annotate daemonset kured ${KEY}-`,
  ],
  [
    'belongs to another installation of Refit',
    {},
    { nodeID: 'refit/cattle/a/b' },
    'refit/cattle/a/b releases the lock',
  ],
])(
  'a lock of Kured that %s comes with the event that ends the wait',
  async (_title, container, lock, ends) => {
    const api = new MemoryApi();
    api.put(daemonSets, kured(container, lock));
    const { others } = await kuredLock.look(api.client, LOOK);
    expect(others).toMatchObject([{ tool: 'Kured', ends }]);
  },
);

test.each<[string, object]>([
  ['without a time', { nodeID: 'w1', TTL: 1 }],
  ['without a TTL', { nodeID: 'w1', created: later(0) }],
  ['whose TTL is a text', { nodeID: 'w1', created: later(-1), TTL: '1' }],
])('a lock %s does not say when it expires', async (_title, lock) => {
  const api = new MemoryApi();
  api.put(daemonSets, kured({}, lock));
  const { others } = await kuredLock.look(api.client, LOOK);
  expect(others).toHaveLength(1);
  expect(others[0]).not.toHaveProperty('until');
});

/**
 * Tests a cluster in which several DaemonSets run Kured, for example one for each pool of nodes. Refit holds their locks
 * only if it holds all of them.
 */
import { expect, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { later, MINUTE, T0 } from '../../test/support/clock/times.ts';
import { daemonSets, type KubeObject } from '../kube/resources.ts';
import { kuredLock } from './kured-lock.ts';

const KEY = 'weave.works/kured-node-lock';
const OURS = 'refit/table';
const LASTS_NS = 300_000_000_000;

const ours = (ms = 0) => ({
  nodeID: OURS,
  metadata: { unschedulable: false },
  created: later(ms),
  TTL: LASTS_NS,
});
const theirs = (nodeID: string) => ({ nodeID, created: later(0), TTL: 0 });

function running(name: string, container: object, annotations = {}): KubeObject {
  const spec = { template: { spec: { containers: [container] } } };
  return { metadata: { namespace: 'kube-system', name, annotations }, spec } as KubeObject;
}

function kured(name: string, lock?: object, args = [`--ds-name=${name}`]): KubeObject {
  const annotations = lock ? { [KEY]: JSON.stringify(lock) } : {};
  return running(name, { command: ['/usr/bin/kured'], args }, annotations);
}

async function look(...found: readonly KubeObject[]) {
  const api = new MemoryApi();
  for (const each of found) api.put(daemonSets, each);
  const isOwn = (holder: string): boolean => holder === OURS;
  const view = await kuredLock.look(api.client, { holder: OURS, isOwn, now: T0, ageOf: () => 0 });
  api.calls.length = 0;
  const lockOf = (name: string): unknown => {
    const text = api.read(daemonSets, name).metadata.annotations?.[KEY];
    return text === undefined ? undefined : JSON.parse(text);
  };
  return { api, view, lockOf };
}

test('a lock of any of several Kured counts as held', async () => {
  const { view } = await look(kured('a', theirs('w1')), kured('b'), kured('c', theirs('w2')));
  expect(view.others.map(({ message }) => message)).toEqual([
    'Kured holds its lock for w1',
    'Kured holds its lock for w2',
  ]);
});

test.each<[string, object | undefined, object | undefined, number | undefined]>([
  ['all locks, since the older one was renewed', ours(-MINUTE), ours(0), T0 - MINUTE],
  ['all locks, whichever is the older one', ours(0), ours(-MINUTE), T0 - MINUTE],
  ['nothing if it holds only the first lock', ours(0), undefined, undefined],
  ['nothing if it holds only the last lock', undefined, ours(0), undefined],
  ['nothing if it holds no lock', undefined, undefined, undefined],
])('of two Kured, Refit holds %s', async (_title, first, last, expected) => {
  const { view } = await look(kured('a', first), kured('b', last));
  expect(view.renewedAt).toBe(expected);
});

test('Refit takes the locks of all Kured, also those that it holds already', async () => {
  const { view, lockOf } = await look(kured('a', ours(-MINUTE)), kured('b'));
  await view.take?.();
  expect([lockOf('a'), lockOf('b')]).toEqual([ours(0), ours(0)]);
});

test('Refit releases only the locks that it holds', async () => {
  const { api, view, lockOf } = await look(kured('a', theirs('w1')), kured('b', ours()));
  await view.giveBack?.();
  expect([lockOf('a'), lockOf('b')]).toEqual([theirs('w1'), undefined]);
  expect(api.calls).toEqual(['patch daemonsets/b']);
});

test('although the place of one lock does not exist, Refit can take the other lock', async () => {
  const lost = kured('lost', undefined, ['--ds-name=missing']);
  const { view, lockOf } = await look(lost, kured('b'));
  expect(view.renewedAt).toBeUndefined();
  await view.take?.();
  await view.giveBack?.();
  expect(lockOf('b')).toEqual(ours());
});

test.each<[string, object | undefined, object | undefined]>([
  ['releases the lock that it has just taken', undefined, undefined],
  ['keeps the lock that it held before', ours(-MINUTE), ours()],
])('if one of two locks cannot be taken, Refit %s', async (_, first, left) => {
  const { api, view, lockOf } = await look(kured('a', first), kured('b'));
  api.before('patch daemonsets/b', () => {
    throw refusal(403, 'Forbidden');
  });
  await expect(view.take?.()).rejects.toMatchObject({ code: 403 });
  expect([lockOf('a'), lockOf('b')]).toEqual([left, undefined]);
});

test('if one of two locks cannot be renewed, Refit keeps both until they expire', async () => {
  const { api, view, lockOf } = await look(kured('a', ours(-MINUTE)), kured('b', ours(-MINUTE)));
  api.before('patch daemonsets/b', () => {
    throw refusal(403, 'Forbidden');
  });
  await expect(view.take?.()).rejects.toMatchObject({ code: 403 });
  expect([lockOf('a'), lockOf('b')]).toEqual([ours(0), ours(-MINUTE)]);
});

test('if one of two locks cannot be released, Refit releases the other one', async () => {
  const { api, view, lockOf } = await look(kured('a', ours()), kured('b', ours()));
  api.before('patch daemonsets/a', () => {
    throw refusal(403, 'Forbidden');
  });
  await expect(view.giveBack?.()).rejects.toMatchObject({ code: 403 });
  expect([lockOf('a'), lockOf('b')]).toEqual([ours(), undefined]);
});

test.each<[string, object | undefined, object | undefined, boolean]>([
  ['only the first lock is a part', ours(), undefined, true],
  ['only the last lock is a part', undefined, ours(), true],
  ['both locks is the whole', ours(), ours(), false],
  ['no lock is no part', undefined, undefined, false],
])('of two Kured, %s', async (_, first, last, expected) => {
  const { view } = await look(kured('a', first), kured('b', last));
  expect(view.part !== undefined).toBe(expected);
});

test('DaemonSets that do not run Kured have no part in the lock', async () => {
  const plain = running('proxy', { command: ['/bin/proxy'], image: 'example.com/kured/proxy' });
  const empty = { metadata: { namespace: 'kube-system', name: 'empty' } };
  const { view } = await look(plain, empty, kured('a', theirs('w1')));
  expect(view.others).toHaveLength(1);
  const { view: none } = await look(plain, empty);
  expect(none.notFound).toMatch(/no DaemonSet of the cluster runs it/);
});

test('of several Kured that share a lock, Refit takes the lock once, with all places that are needed', async () => {
  const shared = [
    kured('arm', undefined, ['--ds-name=amd', '--concurrency=2']),
    kured('amd', undefined, ['--ds-name=amd', '--concurrency=3']),
  ];
  const { api, view, lockOf } = await look(...shared);
  await view.take?.();
  expect(api.calls).toEqual(['patch daemonsets/amd']);
  // Refit takes the places of the DaemonSet that reboots the most nodes at once.
  expect(lockOf('amd')).toMatchObject({ maxOwners: 3 });
  expect(lockOf('arm')).toBeUndefined();
});

test('of several Kured that share a lock, one with an unknown concurrency is told', async () => {
  const { view } = await look(
    kured('arm', undefined, ['--ds-name=amd', '--concurrency=many']),
    kured('amd', undefined, ['--ds-name=amd']),
  );
  expect(view.others).toHaveLength(1);
});

/**
 * Tests the lock of Kured in the format that Kured reads and writes: who holds it, and how Refit acquires, renews and
 * releases it.
 */
import { expect, onTestFinished, test } from 'vitest';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { later, MINUTE, T0 } from '../../test/support/clock/times.ts';
import { daemonSets, type KubeObject } from '../kube/resources.ts';
import { kuredLock } from './kured-lock.ts';
import { createLockKeeper } from './lock-keeper.ts';

const KEY = 'weave.works/kured-node-lock';
const HOUR_NS = 3_600_000_000_000;
const OURS = 'refit/table';
const LOOK_MS = 10_000;

const lock = (nodeID: string, TTL = 0, created = later(0)) => ({
  nodeID,
  metadata: { unschedulable: false },
  created,
  TTL,
});
/** The lock that Refit writes `ms` milliseconds after T0. */
const ours = (ms = 0) => lock(OURS, 300_000_000_000, later(ms));
const list = (maxOwners: number, ...locks: readonly object[]) => ({ maxOwners, locks });
const held = (node: string) => `Kured holds its lock for ${node}`;

function daemonSet(value?: unknown, container: object = {}): KubeObject {
  const annotations = value === undefined ? {} : { [KEY]: JSON.stringify(value) };
  const spec = { template: { spec: { containers: [{ name: 'kured', ...container }] } } };
  return { metadata: { name: 'kured', namespace: 'kube-system', annotations }, spec } as KubeObject;
}

const concurrent = (many: number) => ({ args: ['--period=1h', `--concurrency=${many}`] });

async function look(kured: KubeObject | undefined, now = T0) {
  const api = new MemoryApi();
  if (kured) api.put(daemonSets, kured);
  const ageOf = (): number => 0;
  const isOwn = (holder: string): boolean => holder === OURS;
  const view = await kuredLock.look(api.client, { holder: OURS, isOwn, now, ageOf });
  const value = (): unknown => {
    const text = api.read(daemonSets, 'kured').metadata.annotations?.[KEY];
    return text === undefined ? undefined : JSON.parse(text);
  };
  return { api, view, value, others: view.others.map(({ message }) => message) };
}

test.each<[string, unknown, string[]]>([
  ['without a TTL', lock('w1'), [held('w1')]],
  ['with a TTL', lock('w1', HOUR_NS), [held('w1')]],
  ['that has lapsed', lock('w1', HOUR_NS, later(-60 * MINUTE)), []],
  ['of several nodes', list(2, lock('w1'), lock('w2')), [held('w1'), held('w2')]],
  [
    'of several nodes, one of which has lapsed',
    list(2, lock('w1', 1, later(-1)), lock('w2')),
    [held('w2')],
  ],
  ['of nobody any more', { maxOwners: 2, locks: null }, []],
  ['without a time', { nodeID: 'w1' }, [held('w1')]],
  ['without a node', {}, [held('an unknown node')]],
  ['whose time names its own toString', { nodeID: 'w1', created: { toString: 1 } }, [held('w1')]],
  ['that is no lock', 'w1', [held('an unknown node')]],
  ['with a lock that is none', list(2, 'w1' as never), [held('an unknown node')]],
  ['of Refit', ours(), []],
  ['of Refit and a node', list(2, ours(), lock('w1')), [held('w1')]],
  [
    'of another installation of Refit',
    lock('refit/cattle/a/b', HOUR_NS),
    ['the lock of Kured is held by refit/cattle/a/b'],
  ],
])('a lock %s', async (_title, value, expected) => {
  expect((await look(daemonSet(value))).others).toEqual(expected);
});

test('a lock with a TTL says when it lapses', async () => {
  const { view } = await look(daemonSet(lock('w1', HOUR_NS)));
  expect(view.others).toMatchObject([{ until: later(60 * MINUTE) }]);
});

test('without Kured nobody else can take its lock', async () => {
  const { view, api } = await look(undefined);
  expect(view).toMatchObject({ others: [], renewedAt: T0 });
  await view.take?.();
  await view.giveBack?.();
  expect(view.notFound).toMatch(/no DaemonSet of the cluster runs it/);
  expect(api.calls).toEqual(['list daemonsets']);
});

/** The DaemonSet that the chart of Kured makes for a release in another namespace. */
function charted(container: object = {}, annotations: object = {}): KubeObject {
  const args = ['--ds-name=reboots-kured', '--ds-namespace=kured'];
  const spec = {
    template: { spec: { containers: [{ command: ['/usr/bin/kured'], args, ...container }] } },
  };
  const metadata = { name: 'reboots-kured', namespace: 'kured', annotations };
  return { metadata, spec } as KubeObject;
}

test.each<[string, KubeObject]>([
  [
    'the chart installed in its own namespace, with another name',
    charted({}, { [KEY]: JSON.stringify(lock('w1')) }),
  ],
  [
    'keeps its lock in another annotation',
    charted(
      { args: ['--ds-name', 'reboots-kured', '--ds-namespace=kured', '--lock-annotation=a/b'] },
      { 'a/b': JSON.stringify(lock('w1')) },
    ),
  ],
  [
    'gets its settings from variables',
    charted(
      {
        args: [],
        env: [
          { name: 'KURED_DS_NAME', value: 'reboots-kured' },
          { name: 'KURED_DS_NAMESPACE', value: 'kured' },
        ],
      },
      { [KEY]: JSON.stringify(lock('w1')) },
    ),
  ],
  [
    'is known only by its image',
    charted(
      { command: undefined, image: 'example.com:5000/mirror/kured:1.22.0@sha256:ab' },
      { [KEY]: JSON.stringify(lock('w1')) },
    ),
  ],
])('finds the lock of a Kured that %s', async (_title, kured) => {
  const { view, others } = await look(kured);
  expect(others).toEqual([held('w1')]);
  expect(view.others[0]?.ends).toMatch(/kubectl -n kured annotate daemonset reboots-kured /);
  expect(view.notFound).toBeUndefined();
});

test.each<[string, object, string]>([
  [
    'on a DaemonSet that does not exist',
    { args: ['--ds-name=other'] },
    'Kured of the DaemonSet kured/reboots-kured keeps its lock on the DaemonSet kube-system/other, which does not exist',
  ],
  [
    'in a place that another object names',
    { args: [], env: [{ name: 'KURED_DS_NAMESPACE', valueFrom: {} }] },
    'the DaemonSet kured/reboots-kured does not show where Kured keeps its lock',
  ],
])('a lock %s counts as held', async (_title, container, message) => {
  expect((await look(charted(container))).others).toEqual([message]);
});

test('a lock is taken where Kured keeps it', async () => {
  const api = new MemoryApi();
  api.put(daemonSets, charted());
  const view = await kuredLock.look(api.client, {
    holder: OURS,
    isOwn: (holder) => holder === OURS,
    now: T0,
    ageOf: () => 0,
  });
  await view.take?.();
  const { items } = await api.client.listAll(daemonSets, {});
  expect(items.map(({ metadata }) => metadata.annotations?.[KEY])).toEqual([
    JSON.stringify(ours()),
  ]);
});

test('without the right to list all DaemonSets, Kured is looked for in its usual place, and elsewhere it is unknown', async () => {
  const ask = async (api: MemoryApi) =>
    await kuredLock.look(
      {
        ...api.client,
        get: api.client.get.bind(api.client),
        listAll: async () => await Promise.reject(refusal(403, 'Forbidden')),
      },
      { holder: OURS, isOwn: () => false, now: T0, ageOf: () => 0 },
    );
  const usual = new MemoryApi();
  usual.put(daemonSets, daemonSet(lock('w1')));
  expect((await ask(usual)).others).toMatchObject([{ message: held('w1') }]);
  const elsewhere = new MemoryApi();
  elsewhere.put(daemonSets, charted());
  await expect(ask(elsewhere)).rejects.toThrow();
});

test('without the annotation, and with a text that is no JSON', async () => {
  expect((await look(daemonSet())).others).toEqual([]);
  const broken = daemonSet();
  const metadata = { ...broken.metadata, annotations: { [KEY]: '{' } };
  expect((await look({ ...broken, metadata })).others).toEqual([held('an unknown node')]);
});

test.each<[string, object, unknown, unknown]>([
  ['nobody holds', {}, undefined, ours()],
  ['nobody holds, and Kured reboots one node at once', concurrent(1), undefined, ours()],
  ['nobody holds: all places', concurrent(3), undefined, list(3, ours(), ours(), ours())],
  ['a node held until now', {}, lock('w1', 1, later(-1)), ours()],
  [
    'a node held until now: all places',
    concurrent(2),
    list(2, lock('w1', 1, later(-1))),
    list(2, ours(), ours()),
  ],
  [
    'Refit holds, but Kured has more places now',
    concurrent(2),
    ours(-MINUTE),
    list(2, ours(), ours()),
  ],
  ['Refit holds, but Kured has one place now', {}, list(2, ours(), ours()), ours()],
  [
    'Refit holds beside a node, which keeps its place',
    concurrent(3),
    list(3, { ...lock('w1'), more: 1 }, ours(-MINUTE)),
    list(3, { ...lock('w1'), more: 1 }, ours(), ours()),
  ],
  [
    'Refit holds beside a node, and Kured has one place now',
    {},
    list(2, lock('w1'), ours(-MINUTE)),
    list(1, lock('w1'), ours()),
  ],
])('taking a lock that %s', async (_title, container, before, after) => {
  const { view, value } = await look(daemonSet(before, container));
  await view.take?.();
  expect(value()).toEqual(after);
});

test.each<[string, object, unknown, unknown]>([
  ['alone', {}, ours(), undefined],
  ['in all places', concurrent(2), list(2, ours(), ours()), undefined],
  ['beside a node', concurrent(2), list(2, lock('w1'), ours()), list(2, lock('w1'))],
])('giving back a lock that Refit holds %s', async (_title, container, before, after) => {
  const { view, value } = await look(daemonSet(before, container));
  await view.giveBack?.();
  expect(value()).toEqual(after);
});

/**
 * The renewal time of a lock that does not block Kured. Kured could take a place in the lock, so Refit renews the lock
 * at once.
 */
const WORTHLESS = 0;

test.each<[string, object, unknown, number | undefined]>([
  ['of nobody', {}, undefined, undefined],
  ['of a node', {}, lock('w1'), undefined],
  ['of Refit', {}, ours(-MINUTE), T0 - MINUTE],
  ['of Refit that has expired', {}, ours(-10 * MINUTE), T0 - 10 * MINUTE],
  ['of Refit without a time', {}, { nodeID: OURS }, WORTHLESS],
  ['of Refit in all places', concurrent(2), list(2, ours(), ours(-MINUTE)), T0 - MINUTE],
  ['of Refit beside a node', concurrent(2), list(2, lock('w1'), ours()), T0],
  ['of Refit beside a node, and one place', {}, list(2, lock('w1'), ours()), T0],
  ['of Refit in one of two places', concurrent(2), list(2, ours()), WORTHLESS],
  [
    'of Refit in all places and a node that was late',
    concurrent(2),
    list(2, ours(), ours(), lock('w1', 1, later(-1))),
    WORTHLESS,
  ],
  ['of Refit that Kured ignores, because it reads a list', concurrent(2), ours(), WORTHLESS],
  ['of Refit that Kured ignores, because it reads no list', {}, list(2, ours(), ours()), WORTHLESS],
])('the last renewal of a lock %s', async (_title, container, value, expected) => {
  expect((await look(daemonSet(value, container))).view.renewedAt).toBe(expected);
});

test.each<[string, object, number]>([
  ['no flag', {}, 1],
  ['the flag in the command', { command: ['/usr/bin/kured', '--concurrency=2'] }, 2],
  ['the flag in two words', { args: ['--concurrency', '3', '--period=1h'] }, 3],
  ['the flag twice: the last one counts', { args: ['--concurrency=2', '--concurrency=4'] }, 4],
  ['zero', { args: ['--concurrency=0'] }, 1],
  ['the variable', { env: [{ name: 'KURED_CONCURRENCY', value: '2' }] }, 2],
  ['an empty variable', { env: [{ name: 'KURED_CONCURRENCY', value: '' }] }, 1],
  [
    'the flag before the variable',
    { ...concurrent(3), env: [{ name: 'KURED_CONCURRENCY', value: '2' }] },
    3,
  ],
  ['another variable', { env: [{ name: 'KURED_PERIOD', value: '2' }] }, 1],
])('how many nodes Kured reboots at once: %s', async (_title, container, places) => {
  const { view, value } = await look(daemonSet(undefined, container));
  expect(view.others).toEqual([]);
  await view.take?.();
  const written = value() as { readonly locks?: readonly unknown[] };
  expect(written.locks?.length ?? 1).toBe(places);
});

test.each<[string, object]>([
  ['a flag that is no number', { args: ['--concurrency=$(MANY)'] }],
  ['a flag with more places than an annotation can hold', { args: ['--concurrency=999999999'] }],
  ['a flag without a value', { args: ['--concurrency'] }],
  ['a variable from elsewhere', { env: [{ name: 'KURED_CONCURRENCY', valueFrom: {} }] }],
])('%s: no node starts, and the lock of Refit keeps its form', async (_title, container) => {
  const problem =
    'the DaemonSet kube-system/kured does not show how many nodes Kured reboots at once';
  expect((await look(daemonSet(undefined, container))).others).toEqual([problem]);
  const { view, value, others } = await look(
    daemonSet(list(2, ours(-MINUTE), ours(-MINUTE)), container),
  );
  expect([others, view.renewedAt]).toEqual([[problem], T0 - MINUTE]);
  await view.take?.();
  expect(value()).toEqual(list(2, ours(), ours()));
});

test('a lock that somebody has changed since is left alone', async () => {
  for (const write of ['take', 'giveBack'] as const) {
    const { api, view, value } = await look(daemonSet(ours()));
    const theirs = lock('w1');
    api.change(daemonSets, 'kured', (now) => ({
      ...now,
      metadata: { ...now.metadata, annotations: { [KEY]: JSON.stringify(theirs) } },
    }));
    await expect(view[write]?.()).rejects.toThrow('Conflict');
    expect(value()).toEqual(theirs);
  }
});

function keeperScene() {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  const keeper = createLockKeeper({ client: api.client, clock, holder: OURS });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  let changes = 0;
  keeper.onChange(() => changes++);
  void keeper.run(stop.signal);
  const value = (): string | undefined => api.read(daemonSets, 'kured').metadata.annotations?.[KEY];
  return { api, clock, keeper, value, changes: () => changes };
}

test('the keeper looks every 10 s while a plan is followed, and tells changes only', async () => {
  const { api, clock, keeper, changes } = keeperScene();
  api.put(daemonSets, daemonSet());
  expect(keeper.locks()).toEqual([]);
  keeper.follow('a', ['Kured'], 'waits');
  keeper.follow('a', ['Kured'], 'waits');
  await clock.advance(0);
  const free = { tool: 'Kured', others: [], isOurs: false };
  expect([keeper.locks(), changes()]).toEqual([[free], 1]);
  api.put(daemonSets, daemonSet(lock('w1')));
  await clock.advance(LOOK_MS);
  expect([keeper.locks(), changes()]).toMatchObject([[{ others: [{ message: held('w1') }] }], 2]);
  for (const call of ['list daemonsets', 'get daemonsets/kured'])
    api.before(call, () => {
      throw refusal(403, 'Forbidden');
    });
  await clock.advance(LOOK_MS);
  const message = expect.stringMatching(/^the lock of Kured cannot be read: .*Forb/) as string;
  expect(keeper.locks()).toMatchObject([{ others: [{ message }] }]);
  keeper.forget('a');
  const calls = api.calls.length;
  await clock.advance(60_000);
  expect([api.calls.length, keeper.locks()]).toEqual([calls, []]);
});

test('the keeper takes the lock for nodes in progress, renews it, and gives it back', async () => {
  const { api, clock, keeper, value } = keeperScene();
  api.put(daemonSets, daemonSet());
  keeper.follow('a', ['Kured'], 'at-work');
  await clock.advance(0);
  expect(keeper.locks()).toEqual([{ tool: 'Kured', others: [], isOurs: true }]);
  expect(value()).toBe(JSON.stringify(ours()));
  await clock.advance(5 * MINUTE);
  expect(value()).toBe(JSON.stringify(ours(5 * MINUTE)));
  keeper.follow('a', ['Kured'], 'waits');
  await clock.advance(LOOK_MS);
  expect(value()).toBeUndefined();
});

test('without Kured, nodes are in progress all the same, and a Kured that comes later finds the lock', async () => {
  const { api, clock, keeper, value } = keeperScene();
  keeper.follow('a', ['Kured'], 'at-work');
  await clock.advance(0);
  const notFound = expect.stringContaining('no DaemonSet of the cluster runs it') as string;
  expect(keeper.locks()).toEqual([{ tool: 'Kured', others: [], isOurs: true, notFound }]);
  api.put(daemonSets, daemonSet());
  await clock.advance(LOOK_MS);
  expect(value()).toBe(JSON.stringify(ours(LOOK_MS)));
});

test('a right that is missing is named', async () => {
  const { api, clock, keeper } = keeperScene();
  api.put(daemonSets, daemonSet());
  api.before('patch daemonsets/kured', () => {
    throw refusal(403, 'Forbidden');
  });
  keeper.follow('a', ['Kured'], 'at-work');
  await clock.advance(0);
  const problem = expect.stringContaining('Forbidden') as string;
  expect(keeper.locks()).toMatchObject([{ isOurs: false, others: [], problem }]);
});

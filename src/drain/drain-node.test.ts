/**
 * Shows a drain from the first list to the end: which pods are evicted, left, awaited and refused, and how the drain
 * ends.
 */
import { afterEach, describe, expect, test } from 'vitest';
import { drainRig, namesOf, type RunningDrain } from '../../test/support/builders/drain-rig.ts';
import { refuseByBudget } from '../../test/support/builders/pod-api.ts';
import { buildPod, type PodTraits } from '../../test/support/builders/pods.ts';
import type { PodRule } from './pod-rules.ts';

const { drain, endAll } = drainRig();

afterEach(endAll);

test('an empty node is drained at once, without a question', async () => {
  const rig = await drain([['elsewhere', { node: 'n2' }]]);
  expect(await rig.done).toBe('drained');
  expect(rig.api.evictions).toEqual([]);
});

test('all pods are evicted side by side, by uid, and waited for', async () => {
  const rig = await drain([['a'], ['b'], ['c', { namespace: 'other' }]], { gracePeriodSeconds: 5 });
  expect(rig.api.evictions).toEqual([
    { pod: 'default/a', uid: 'a-uid', gracePeriodSeconds: 5 },
    { pod: 'default/b', uid: 'b-uid', gracePeriodSeconds: 5 },
    { pod: 'other/c', uid: 'c-uid', gracePeriodSeconds: 5 },
  ]);
  for (const key of ['default/a', 'default/b', 'other/c']) {
    expect(rig.clock.monotonic()).toBe(0);
    rig.api.remove(key);
    await rig.clock.advance(0);
  }
  expect(await rig.done).toBe('drained');
  expect(rig.progress.map(({ left }) => left)).toEqual([3, 2, 1, 0]);
  expect(rig.api.evictions).toHaveLength(3);
});

test('what a drain leaves does not keep it up, and a pod on its way out is not evicted again', async () => {
  const mirror = {
    controller: null,
    metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } },
  };
  const rig = await drain(
    [
      ['daemon', { controller: 'DaemonSet/ds' }],
      ['mirror', mirror],
      ['finished', { phase: 'Succeeded', controller: null }],
      ['ending', { metadata: { deletionTimestamp: '2026-01-01T00:00:10Z' } }],
      ['lost', { controller: 'DaemonSet/gone' }],
    ],
    {},
    (api) => api.daemonSets.add('ds'),
  );
  expect(namesOf(rig)).toEqual(['lost']);
  expect(rig.progress).toEqual([{ left: 2, pods: ['default/ending', 'default/lost'] }]);
  rig.api.remove('default/lost');
  rig.api.remove('default/ending');
  expect(await rig.done).toBe('drained');
});

test('a DaemonSet is asked about once, however many looks it takes', async () => {
  const daemon = { controller: 'DaemonSet/ds' };
  const rig = await drain([['d1', daemon], ['d2', daemon], ['a'], ['b']], {}, (api) =>
    api.daemonSets.add('ds'),
  );
  rig.api.remove('default/a');
  await rig.clock.advance(0);
  rig.api.remove('default/b');
  expect(await rig.done).toBe('drained');
  expect(rig.api.reads).toEqual(['list pods spec.nodeName=n1', 'get daemonsets default/ds']);
});

describe('a pod that the options forbid to evict', () => {
  test('refuses the drain before anything is evicted, by name', async () => {
    const pods: [string, PodTraits?][] = [
      ['a'],
      ['bare', { controller: null }],
      ['data', { emptyDir: true }],
    ];
    const rig = await drain(pods, { localData: 'refuse', unmanagedPods: 'refuse' });
    expect(await rig.done).toBe(
      'DrainRefusedError: default/bare has no controller, so nothing would create it again; ' +
        'default/data has data in an emptyDir volume, which would be lost; ' +
        'spec.drain.force: true and spec.drain.deleteEmptyDirData: true of an UpgradePolicy allows this',
    );
    expect(rig.api.evictions).toEqual([]);
  });

  test('ends the drain where it arrives later', async () => {
    const rig = await drain([['a']], { unmanagedPods: 'refuse' });
    rig.api.put(buildPod('bare', { controller: null }));
    expect(await rig.done).toContain('default/bare has no controller');
    expect(namesOf(rig)).toEqual(['a']);
  });
});

describe('pods that arrive during the drain', () => {
  test('are evicted too, but for those of a DaemonSet', async () => {
    const rig = await drain([['a']], {}, (api) => api.daemonSets.add('ds'));
    rig.api.put(buildPod('late', { controller: 'ReplicaSet/other' }));
    rig.api.put(buildPod('daemon', { controller: 'DaemonSet/ds' }));
    await rig.clock.advance(0);
    expect(namesOf(rig)).toEqual(['a', 'late']);
    rig.api.remove('default/a');
    rig.api.remove('default/late');
    expect(await rig.done).toBe('drained');
  });

  test('a new pod under the name of an old one is another pod', async () => {
    const rig = await drain([['slow'], ['db-0', { controller: 'StatefulSet/db' }]]);
    rig.api.remove('default/db-0');
    rig.api.put(buildPod('db-0', { controller: 'StatefulSet/db', uid: 'second' }));
    await rig.clock.advance(0);
    expect(rig.api.evictions.map(({ uid }) => uid)).toEqual(['slow-uid', 'db-0-uid', 'second']);
  });

  test('are left in the end where they come back each time', async () => {
    let born = 0;
    const rig = await drain(
      [['slow', { controller: 'ReplicaSet/slow' }], ['stubborn']],
      {},
      (api) => {
        api.onEvict = ({ pod }) => {
          if (pod === 'default/slow') return;
          api.remove(pod);
          if (born < 20) api.put(buildPod(`stubborn-${++born}`));
        };
      },
    );
    await rig.clock.advance(0);
    expect(namesOf(rig)).toEqual(['slow', 'stubborn', 'stubborn-1', 'stubborn-2', 'stubborn-3']);
    rig.api.remove('default/slow');
    expect(await rig.done).toBe('drained');
  });

  test('a workload with many pods that leave for good is not taken for one that comes back', async () => {
    const pods = Array.from({ length: 8 }, (_, i): [string] => [`web-${i}`]);
    const rig = await drain(pods, {}, (api) => {
      api.onEvict = ({ pod }) => api.remove(pod);
    });
    expect(await rig.done).toBe('drained');
    expect(rig.api.evictions).toHaveLength(8);
  });
});

test('of many pods that are left, the first five are named in order', async () => {
  const names = ['g', 'f', 'e', 'd', 'c', 'b', 'a'];
  const rig = await drain(names.map((name) => [name]));
  expect(rig.progress.at(-1)).toEqual({
    left: 7,
    pods: ['default/a', 'default/b', 'default/c', 'default/d', 'default/e'],
  });
  for (const name of names) rig.api.remove(`default/${name}`);
  expect(await rig.done).toBe('drained');
});

test('pods that should have ended long ago are named with what holds them', async () => {
  const rig = await drain([['stuck'], ['slow']]);
  rig.api.end('default/slow', { deletionTimestamp: '2026-01-01T00:05:00Z' });
  rig.api.end('default/stuck', { finalizers: ['example.com/backup'] });
  const pods = ['default/slow', 'default/stuck'];
  await rig.clock.advance(59_000);
  expect(rig.progress.at(-1)).toEqual({ left: 2, pods });
  await rig.clock.advance(1_000);
  const stuck =
    'default/stuck should have ended by 2026-01-01T00:00:30Z (it waits for finalizers: example.com/backup)';
  expect(rig.progress.at(-1)).toEqual({ left: 2, pods, blockedBy: stuck });
  await rig.clock.advance(300_000);
  const slow =
    'default/slow should have ended by 2026-01-01T00:05:00Z (the kubelet has not reported that it ended)';
  expect(rig.progress.at(-1)).toEqual({ left: 2, pods, blockedBy: `${slow}; ${stuck}` });
  expect(rig.api.evictions).toHaveLength(2);
});

test.each<[string, (rig: RunningDrain) => Promise<void>]>([
  ['while pods end', async () => await Promise.resolve()],
  ['while a budget is asked again and again', async ({ clock }) => await clock.advance(1_500)],
])('an abort ends the drain at once, %s', async (_name, before) => {
  const rig = await drain([['a'], ['b'], ['c']], {}, (api) => {
    api.onEvict = ({ pod }) => {
      if (pod !== 'default/a') throw refuseByBudget('web');
      api.end(pod);
    };
  });
  await before(rig);
  const asked = rig.api.evictions.length;
  rig.stop.abort(new Error('the lease is lost'));
  expect(await rig.done).toBe('Error: the lease is lost');
  await rig.clock.advance(60_000);
  expect(rig.api.evictions).toHaveLength(asked);
});

describe('rules for single pods', () => {
  const app = (name: string): PodTraits => ({ labels: { app: name } });
  const rule = (name: string, action: PodRule['action'], turn = 0): PodRule => ({
    pods: [{ selector: { matchLabels: { app: name } } }],
    action,
    turn,
  });

  test('one leaves its pods, and the first that matches counts', async () => {
    const podRules = [rule('web', 'leave'), rule('web', 'evict', 5)];
    const rig = await drain(
      [
        ['web', app('web')],
        ['db', app('db')],
      ],
      { podRules },
    );
    expect(namesOf(rig)).toEqual(['db']);
    rig.api.remove('default/db');
    expect(await rig.done).toBe('drained');
  });

  test('pods of a lower turn are gone before the next ones are evicted', async () => {
    const podRules = [rule('last', 'evict', 7), rule('first', 'evict', -3)];
    const rig = await drain([['last', app('last')], ['plain'], ['first', app('first')]], {
      podRules,
    });
    for (const [index, name] of ['first', 'plain', 'last'].entries()) {
      expect(namesOf(rig)).toHaveLength(index + 1);
      expect(namesOf(rig).at(-1)).toBe(name);
      rig.api.remove(`default/${name}`);
      await rig.clock.advance(0);
    }
    expect(await rig.done).toBe('drained');
  });

  test('a pod that must end by itself is waited for, told of, and not evicted', async () => {
    const podRules = [rule('job', 'wait'), rule('late', 'evict', 1)];
    const rig = await drain(
      [
        ['job', app('job')],
        ['late', app('late')],
      ],
      { podRules },
    );
    expect(rig.progress.at(-1)).toEqual({
      left: 2,
      pods: ['default/job', 'default/late'],
      blockedBy: 'waiting for default/job to complete',
    });
    expect(namesOf(rig)).toEqual([]);
    rig.api.put(buildPod('job', { ...app('job'), phase: 'Succeeded' }));
    await rig.clock.advance(0);
    expect(namesOf(rig)).toEqual(['late']);
    rig.api.remove('default/late');
    expect(await rig.done).toBe('drained');
  });

  test('the labels of a namespace are asked for once, and only where a rule needs them', async () => {
    const namespaceSelector = { matchLabels: { team: 'a' } };
    const podRules: PodRule[] = [{ pods: [{ namespaceSelector }], action: 'leave', turn: 0 }];
    const rig = await drain(
      [
        ['a1', { namespace: 'a' }],
        ['a2', { namespace: 'a' }],
        ['b1', { namespace: 'b' }],
      ],
      { podRules },
      ({ namespaces }) => namespaces.set('a', { team: 'a' }).set('b', {}),
    );
    expect(namesOf(rig)).toEqual(['b/b1']);
    expect(rig.api.reads.filter((read) => read.startsWith('get namespaces'))).toHaveLength(2);
    rig.api.remove('b/b1');
    expect(await rig.done).toBe('drained');
  });

  test('while a namespace cannot be read nothing is evicted, and it is asked for again', async () => {
    const podRules: PodRule[] = [
      { pods: [{ namespaceSelector: { matchLabels: { team: 'a' } } }], action: 'leave', turn: 0 },
    ];
    const rig = await drain([['a']], { podRules });
    expect(rig.progress.at(-1)).toEqual({
      left: 1,
      pods: ['default/a'],
      blockedBy: expect.stringMatching(
        /^a namespace cannot be read, so the drain waits: /,
      ) as unknown,
    });
    await rig.clock.advance(20_000);
    expect(rig.api.evictions).toEqual([]);
    rig.api.namespaces.set('default', { team: 'b' });
    await rig.clock.advance(5_000);
    expect(namesOf(rig)).toEqual(['a']);
    rig.api.remove('default/a');
    expect(await rig.done).toBe('drained');
  });

  test('a rule applies only in the namespaces that it names, and none of them is read', async () => {
    const podRules: PodRule[] = [{ pods: [{ namespaces: ['a'] }], action: 'leave', turn: 0 }];
    const rig = await drain(
      [
        ['kept', { namespace: 'a' }],
        ['gone', { namespace: 'b' }],
      ],
      { podRules },
    );
    expect(namesOf(rig)).toEqual(['b/gone']);
    expect(rig.api.reads.filter((read) => read.startsWith('get namespaces'))).toEqual([]);
    rig.api.remove('b/gone');
    expect(await rig.done).toBe('drained');
  });

  test('pods of a lower priority go first, but the turn of a rule counts more', async () => {
    const pods: [string, PodTraits][] = [
      ['high', { priority: 1000 }],
      ['low', { priority: -1 }],
      ['plain', {}],
      ['early', { ...app('early'), priority: 2_000_000_000 }],
    ];
    const rig = await drain(pods, { byPriority: true, podRules: [rule('early', 'evict', -1)] });
    for (const [index, name] of ['early', 'low', 'plain', 'high'].entries()) {
      expect(namesOf(rig)).toHaveLength(index + 1);
      expect(namesOf(rig).at(-1)).toBe(name);
      rig.api.remove(`default/${name}`);
      await rig.clock.advance(0);
    }
    expect(await rig.done).toBe('drained');
  });
});

describe('time for load balancers', () => {
  test('passes before the first eviction, and the drain says so', async () => {
    const rig = await drain([['a'], ['b']], { graceMs: 30_000 });
    expect(rig.progress).toEqual([
      {
        left: 2,
        pods: ['default/a', 'default/b'],
        blockedBy: expect.stringMatching(
          /^waiting until .+Z for load balancers to exclude the node$/,
        ) as unknown,
      },
    ]);
    await rig.clock.advance(29_999);
    expect(namesOf(rig)).toEqual([]);
    await rig.clock.advance(1);
    expect(namesOf(rig)).toEqual(['a', 'b']);
    expect(rig.progress.at(-1)).toEqual({ left: 2, pods: ['default/a', 'default/b'] });
  });

  test('is not needed on a node without pods to evict', async () => {
    const rig = await drain([['elsewhere', { node: 'n2' }]], { graceMs: 30_000 });
    expect(await rig.done).toBe('drained');
  });
});

describe('pods of Jobs', () => {
  const job = { controller: 'Job/backup' };

  test('are evicted at once by default', async () => {
    const rig = await drain([['backup', job]]);
    expect(namesOf(rig)).toEqual(['backup']);
  });

  test('may complete within their time, while the other pods are evicted', async () => {
    const rig = await drain([['backup', job], ['web']], { jobsWaitMs: 60_000 });
    expect(namesOf(rig)).toEqual(['web']);
    rig.api.remove('default/web');
    await rig.clock.advance(59_000);
    expect(rig.progress.at(-1)).toEqual({
      left: 1,
      pods: ['default/backup'],
      blockedBy: expect.stringMatching(
        /^waiting for default\/backup to complete; at .+Z, the drain evicts the pods that have not completed$/,
      ) as unknown,
    });
    rig.api.put(buildPod('backup', { ...job, phase: 'Succeeded' }));
    await rig.clock.advance(0);
    expect(await rig.done).toBe('drained');
    expect(namesOf(rig)).toEqual(['web']);
  });

  test('are evicted when their time is over', async () => {
    const rig = await drain([['backup', job]], { jobsWaitMs: 60_000 });
    await rig.clock.advance(59_999);
    expect(namesOf(rig)).toEqual([]);
    await rig.clock.advance(1);
    expect(namesOf(rig)).toEqual(['backup']);
    expect(rig.progress.at(-1)?.blockedBy).not.toContain('to complete');
  });

  test.each([
    ['evict', ['backup']],
    ['leave', []],
  ] as const)('a rule to %s them counts more than the time', async (action, evicted) => {
    const podRules = [{ pods: [{}], action, turn: 0 }];
    const rig = await drain([['backup', job]], { jobsWaitMs: 60_000, podRules });
    expect(namesOf(rig)).toEqual(evicted);
  });
});

import { afterEach, describe, expect, test } from 'vitest';
import { PodApi, refuse, refuseByBudget } from '../../test/builders/pod-api.ts';
import { buildPod, type PodTraits } from '../../test/builders/pods.ts';
import { FakeClock } from '../../test/faults/fake-clock.ts';
import { TransportError } from '../kube/status-error.ts';
import { silentLogger } from '../util/log.ts';
import { type DrainProgress, drainNode } from './drain.ts';
import { DEFAULT_DRAIN, type DrainOptions } from './options.ts';

interface Rig {
  readonly api: PodApi;
  readonly clock: FakeClock;
  readonly progress: DrainProgress[];
  readonly stop: AbortController;
  readonly done: Promise<string>;
}

const rigs: Rig[] = [];

/** A drain of `n1` that has come as far as it gets without time passing. */
async function drain(
  pods: readonly [string, PodTraits?][],
  options: Partial<DrainOptions> = {},
  prepare?: (api: PodApi) => void,
): Promise<Rig> {
  const api = new PodApi();
  for (const [name, traits] of pods) api.put(buildPod(name, traits));
  prepare?.(api);
  const clock = new FakeClock();
  const stop = new AbortController();
  const progress: DrainProgress[] = [];
  const done = drainNode(
    'n1',
    { ...DEFAULT_DRAIN, ...options },
    {
      client: api.client,
      clock,
      random: () => 0.99,
      log: silentLogger,
      signal: stop.signal,
      onChange: (state) => progress.push(state),
    },
  ).then(
    () => 'drained',
    (error: Error) => `${error.name}: ${error.message}`,
  );
  const rig = { api, clock, progress, stop, done };
  rigs.push(rig);
  await clock.advance(0);
  return rig;
}

const names = ({ api }: Rig): string[] => api.evictions.map(({ pod }) => pod.replace('default/', ''));
const gone = (api: PodApi): void => {
  api.onEvict = ({ pod }) => api.remove(pod);
};

/** Whatever a drain was through, it must leave neither a watch nor a timer behind. */
afterEach(async () => {
  for (const { api, clock, stop, done } of rigs.splice(0)) {
    stop.abort(new Error('the test is over'));
    await done;
    expect({ watching: api.watching, timers: clock.pending }).toEqual({ watching: 0, timers: 0 });
  }
});

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
  const mirror = { controller: null, metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } };
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
  expect(names(rig)).toEqual(['lost']);
  expect(rig.progress).toEqual([{ left: 2 }]);
  rig.api.remove('default/lost');
  rig.api.remove('default/ending');
  expect(await rig.done).toBe('drained');
});

test('a DaemonSet is asked about once, however many looks it takes', async () => {
  const daemon = { controller: 'DaemonSet/ds' };
  const rig = await drain([['d1', daemon], ['d2', daemon], ['a'], ['b']], {}, (api) => api.daemonSets.add('ds'));
  rig.api.remove('default/a');
  await rig.clock.advance(0);
  rig.api.remove('default/b');
  expect(await rig.done).toBe('drained');
  expect(rig.api.reads).toEqual(['get daemonsets default/ds']);
});

describe('a pod that the options forbid to evict', () => {
  test('refuses the drain before anything is evicted, by name', async () => {
    const pods: [string, PodTraits?][] = [['a'], ['bare', { controller: null }], ['data', { emptyDir: true }]];
    const rig = await drain(pods, { localData: 'refuse', unmanagedPods: 'refuse' });
    expect(await rig.done).toBe(
      'DrainRefusedError: default/bare has no controller, so nobody would create it anew; ' +
        'default/data has data in an emptyDir volume, which would be lost',
    );
    expect(rig.api.evictions).toEqual([]);
  });

  test('ends the drain where it arrives later', async () => {
    const rig = await drain([['a']], { unmanagedPods: 'refuse' });
    rig.api.put(buildPod('bare', { controller: null }));
    expect(await rig.done).toContain('default/bare has no controller');
    expect(names(rig)).toEqual(['a']);
  });
});

describe('pods that arrive during the drain', () => {
  test('are evicted too, but for those of a DaemonSet', async () => {
    const rig = await drain([['a']], {}, (api) => api.daemonSets.add('ds'));
    rig.api.put(buildPod('late', { controller: 'ReplicaSet/other' }));
    rig.api.put(buildPod('daemon', { controller: 'DaemonSet/ds' }));
    await rig.clock.advance(0);
    expect(names(rig)).toEqual(['a', 'late']);
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
    const rig = await drain([['slow', { controller: 'ReplicaSet/slow' }], ['stubborn']], {}, (api) => {
      api.onEvict = ({ pod }) => {
        if (pod === 'default/slow') return;
        api.remove(pod);
        api.put(buildPod(`stubborn-${++born}`));
      };
    });
    await rig.clock.advance(0);
    expect(names(rig)).toEqual(['slow', 'stubborn', 'stubborn-1', 'stubborn-2', 'stubborn-3']);
    rig.api.remove('default/slow');
    expect(await rig.done).toBe('drained');
  });

  test('a workload with many pods that leave for good is not taken for one that comes back', async () => {
    const pods = Array.from({ length: 8 }, (_, i): [string] => [`web-${i}`]);
    const rig = await drain(pods, {}, gone);
    expect(await rig.done).toBe('drained');
    expect(rig.api.evictions).toHaveLength(8);
  });
});

describe('a budget with nothing to spare', () => {
  const SIX = Array.from({ length: 6 }, (_, i): [string, PodTraits] => [`web-${i}`, { labels: { app: 'web' } }]);
  const closed = (api: PodApi): void => {
    api.onEvict = () => {
      throw refuseByBudget('web');
    };
  };

  test('is asked by one pod at a time, ever more seldom, and by each in turn', async () => {
    const rig = await drain(SIX, {}, closed);
    expect(rig.api.evictions).toHaveLength(6);
    const counts: number[] = [];
    for (const ms of [1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000]) {
      await rig.clock.advance(ms);
      counts.push(rig.api.evictions.length);
    }
    expect(counts).toEqual([7, 8, 9, 10, 11, 12, 13]);
    expect(names(rig).slice(6)).toEqual(['web-0', 'web-1', 'web-2', 'web-3', 'web-4', 'web-5', 'web-0']);
  });

  test('is named to people with its pods and what it lacks, once', async () => {
    const rig = await drain(SIX.slice(0, 2), {}, closed);
    await rig.clock.advance(30_000);
    expect(rig.progress.at(-1)).toEqual({
      left: 2,
      blockedBy:
        'PodDisruptionBudget default/web holds default/web-0, default/web-1: it needs 2 healthy pods and has 2 currently',
    });
    expect(rig.progress.filter(({ blockedBy }) => blockedBy?.includes('web-0, default/web-1'))).toHaveLength(1);
  });

  test('lets all go as fast as it can once it opens', async () => {
    const rig = await drain(SIX, {}, closed);
    await rig.clock.advance(7_000);
    gone(rig.api);
    const before = rig.api.evictions.length;
    expect(await rig.clock.runUntil(rig.done)).toBe('drained');
    expect(rig.api.evictions.length - before).toBe(6);
    expect(rig.progress.at(-1)).toEqual({ left: 0 });
    expect(rig.clock.monotonic()).toBeLessThanOrEqual(15_000);
  });

  test('that has one to spare from time to time lets one go each time', async () => {
    const rig = await drain(SIX, {}, closed);
    let spare = 0;
    rig.api.onEvict = ({ pod }) => {
      if (spare === 0) throw refuseByBudget('web');
      spare -= 1;
      rig.api.remove(pod);
    };
    for (let left = 5; left >= 0; left--) {
      spare = 1;
      await rig.clock.advance(10_000);
      expect(rig.progress.at(-1)?.left).toBe(left);
    }
    expect(await rig.done).toBe('drained');
    // Each opening costs the one that goes, and the few questions of a pause that begins anew.
    expect(rig.api.evictions.length).toBeLessThan(6 + 6 * 5);
  });

  test('does not hold up the pods of another', async () => {
    const rig = await drain([...SIX.slice(0, 2), ['db'], ['free']], {}, (api) => {
      api.onEvict = ({ pod }) => {
        if (pod.includes('web')) throw refuseByBudget('web');
        if (pod.includes('db')) throw refuseByBudget('db');
        api.remove(pod);
      };
    });
    await rig.clock.advance(1_000);
    expect(names(rig).slice(4).toSorted()).toEqual(['db', 'web-0']);
    expect(rig.progress.at(-1)).toMatchObject({ left: 3 });
    expect(rig.progress.at(-1)?.blockedBy).toMatch(
      /^PodDisruptionBudget default\/db holds default\/db: .*; PodDisruptionBudget default\/web holds default\/web-0, default\/web-1: /,
    );
  });

  test('a pod that somebody else removes is not asked for any more', async () => {
    const rig = await drain(SIX.slice(0, 2), {}, closed);
    rig.api.remove('default/web-0');
    await rig.clock.advance(3_000);
    expect(names(rig)).toEqual(['web-0', 'web-1', 'web-1', 'web-1']);
    rig.api.remove('default/web-1');
    expect(await rig.done).toBe('drained');
  });

  test('the time that a server asks for is waited', async () => {
    const rig = await drain([['a']], {}, (api) => {
      api.onEvict = () => {
        const causes = [
          { reason: 'DisruptionBudget', message: 'The disruption budget web is still being processed by the server.' },
        ];
        throw refuse({ code: 429, reason: 'TooManyRequests', details: { retryAfterSeconds: 10, causes } });
      };
    });
    await rig.clock.advance(9_000);
    expect(rig.api.evictions).toHaveLength(1);
    expect(rig.progress.at(-1)?.blockedBy).toBe(
      'PodDisruptionBudget default/web holds default/a: it is still being processed by the server',
    );
    await rig.clock.advance(1_000);
    expect(rig.api.evictions).toHaveLength(2);
  });
});

describe('an eviction that goes wrong', () => {
  const terminating = {
    code: 403,
    reason: 'Forbidden',
    details: { causes: [{ reason: 'NamespaceTerminating', message: 'namespace default is being terminated' }] },
  };
  const twoBudgets = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
  test.each<[string, Error, string | undefined]>([
    [
      'a namespace that is being deleted',
      refuse(terminating),
      'default/a cannot be evicted while its namespace is being deleted',
    ],
    [
      'two budgets',
      refuse({ code: 500, reason: '', message: twoBudgets }),
      `default/a cannot be evicted: ${twoBudgets}`,
    ],
    [
      'a right that is missing',
      refuse({ code: 403, reason: 'Forbidden', message: 'no' }),
      'default/a cannot be evicted: no',
    ],
    [
      'an overloaded server',
      refuse({ code: 429, reason: 'TooManyRequests', message: 'busy' }),
      'default/a wait for the API server: busy',
    ],
    ['no answer', new TransportError('reset'), 'default/a wait for the API server: reset'],
    ['a pod that is gone', refuse({ code: 404, reason: 'NotFound' }), undefined],
    ['another pod under its name', refuse({ code: 409, reason: 'Conflict' }), undefined],
  ])('%s: is told, and tried again until the pod is gone', async (_name, error, blockedBy) => {
    const rig = await drain([['a']], {}, (api) => {
      api.onEvict = () => {
        throw error;
      };
    });
    expect(rig.progress.at(-1)).toEqual({ left: 1, ...(blockedBy ? { blockedBy } : {}) });
    await rig.clock.advance(1_000);
    expect(rig.api.evictions).toHaveLength(2);
    rig.api.remove('default/a');
    expect(await rig.done).toBe('drained');
  });

  test('a server in trouble is asked by one pod for all', async () => {
    const rig = await drain([['a'], ['b'], ['c']], {}, (api) => {
      api.onEvict = () => {
        throw new TransportError('reset');
      };
    });
    await rig.clock.advance(3_000);
    expect(names(rig)).toEqual(['a', 'b', 'c', 'a', 'b']);
  });
});

test('pods that should have ended long ago are named with what holds them', async () => {
  const rig = await drain([['stuck'], ['slow']]);
  rig.api.end('default/slow', { deletionTimestamp: '2026-01-01T00:05:00Z' });
  rig.api.end('default/stuck', { finalizers: ['example.com/backup'] });
  await rig.clock.advance(59_000);
  expect(rig.progress.at(-1)).toEqual({ left: 2 });
  await rig.clock.advance(1_000);
  const stuck = 'default/stuck was to end by 2026-01-01T00:00:30Z (held by example.com/backup)';
  expect(rig.progress.at(-1)).toEqual({ left: 2, blockedBy: stuck });
  await rig.clock.advance(300_000);
  const slow = 'default/slow was to end by 2026-01-01T00:05:00Z (the kubelet has not reported its end)';
  expect(rig.progress.at(-1)).toEqual({ left: 2, blockedBy: `${slow}; ${stuck}` });
  expect(rig.api.evictions).toHaveLength(2);
});

test.each<[string, (rig: Rig) => Promise<void>]>([
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

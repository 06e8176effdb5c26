/** Shows what a drain does if evictions are refused: how often it retries, for which pod, and what it reports. */
import { afterEach, describe, expect, test } from 'vitest';
import { drainRig, namesOf } from '../../test/support/builders/drain-rig.ts';
import { type PodApi, refuse, refuseByBudget } from '../../test/support/builders/pod-api.ts';
import type { PodTraits } from '../../test/support/builders/pods.ts';
import { TransportError } from '../kube/status-error.ts';

const { drain, endAll } = drainRig();

afterEach(endAll);

/**
 * Refuses evictions. After 200 attempts it accepts them, so that a drain without pauses ends instead of running for
 * ever.
 */
const closed = (api: PodApi): void => {
  api.onEvict = ({ pod }) => {
    if (api.evictions.length < 200) throw refuseByBudget('web');
    api.remove(pod);
  };
};
const gone = (api: PodApi): void => {
  api.onEvict = ({ pod }) => api.remove(pod);
};

describe('a budget with nothing to spare', () => {
  const SIX = Array.from({ length: 6 }, (_, i): [string, PodTraits] => [
    `web-${i}`,
    { labels: { app: 'web' } },
  ]);

  test('while a PodDisruptionBudget blocks, Refit retries one pod at a time, in turn, with growing pauses', async () => {
    const rig = await drain(SIX, {}, closed);
    expect(rig.api.evictions).toHaveLength(6);
    const counts: number[] = [];
    for (const ms of [1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000]) {
      await rig.clock.advance(ms);
      counts.push(rig.api.evictions.length);
    }
    expect(counts).toEqual([7, 8, 9, 10, 11, 12, 13]);
    expect(namesOf(rig).slice(6)).toEqual([
      'web-0',
      'web-1',
      'web-2',
      'web-3',
      'web-4',
      'web-5',
      'web-0',
    ]);
  });

  test('is named to people with its pods and what it lacks, once', async () => {
    const rig = await drain(SIX.slice(0, 2), {}, closed);
    await rig.clock.advance(30_000);
    expect(rig.progress.at(-1)).toEqual({
      left: 2,
      pods: ['default/web-0', 'default/web-1'],
      blockedBy:
        'PodDisruptionBudget default/web blocks default/web-0, default/web-1: it needs 2 healthy pods and has 2 currently',
    });
    expect(
      rig.progress.filter(({ blockedBy }) => blockedBy?.includes('web-0, default/web-1')),
    ).toHaveLength(1);
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
    // Each time the budget allows one eviction, the drain sends this eviction and a few more evictions, because the
    // pauses are short again after a success.
    expect(rig.api.evictions.length).toBeLessThan(6 + 6 * 5);
  });

  test('is asked more often again once it let one go', async () => {
    const rig = await drain(SIX, {}, closed);
    await rig.clock.advance(15_000);
    rig.api.onEvict = ({ pod }) => {
      closed(rig.api);
      rig.api.remove(pod);
    };
    await rig.clock.advance(10_000);
    const before = rig.api.evictions.length;
    // These are the evictions after 1, 2 and 4 seconds. Before, the pauses had grown to 10 seconds.
    await rig.clock.advance(8_000);
    expect(rig.api.evictions.length - before).toBe(3);
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
    expect(namesOf(rig).slice(4).toSorted()).toEqual(['db', 'web-0']);
    expect(rig.progress.at(-1)).toMatchObject({ left: 3 });
    expect(rig.progress.at(-1)?.blockedBy).toMatch(
      /^PodDisruptionBudget default\/db blocks default\/db: .*; PodDisruptionBudget default\/web blocks default\/web-0, default\/web-1: /,
    );
  });

  test('a pod that somebody else removes is not asked for any more', async () => {
    const rig = await drain(SIX.slice(0, 2), {}, closed);
    rig.api.remove('default/web-0');
    await rig.clock.advance(3_000);
    expect(namesOf(rig)).toEqual(['web-0', 'web-1', 'web-1', 'web-1']);
    rig.api.remove('default/web-1');
    expect(await rig.done).toBe('drained');
  });

  test('the time that a server asks for is waited', async () => {
    const rig = await drain([['a']], {}, (api) => {
      api.onEvict = () => {
        const causes = [
          {
            reason: 'DisruptionBudget',
            message: 'The disruption budget web is still being processed by the server.',
          },
        ];
        throw refuse({
          code: 429,
          reason: 'TooManyRequests',
          details: { retryAfterSeconds: 10, causes },
        });
      };
    });
    await rig.clock.advance(9_000);
    expect(rig.api.evictions).toHaveLength(1);
    expect(rig.progress.at(-1)?.blockedBy).toBe(
      'PodDisruptionBudget default/web blocks default/a: it is still being processed by the server',
    );
    await rig.clock.advance(1_000);
    expect(rig.api.evictions).toHaveLength(2);
  });

  test('a server that asks for an hour is asked again after 30 s', async () => {
    const rig = await drain([['a']], {}, (api) => {
      api.onEvict = () => {
        throw refuse({
          code: 429,
          reason: 'TooManyRequests',
          details: { retryAfterSeconds: 3_600 },
        });
      };
    });
    await rig.clock.advance(29_000);
    expect(rig.api.evictions).toHaveLength(1);
    await rig.clock.advance(1_000);
    expect(rig.api.evictions).toHaveLength(2);
  });
});

describe('an eviction that goes wrong', () => {
  const terminating = {
    code: 403,
    reason: 'Forbidden',
    details: {
      causes: [
        { reason: 'NamespaceTerminating', message: 'namespace default is being terminated' },
      ],
    },
  };
  const twoBudgets =
    'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
  test.each<[string, Error, string | undefined]>([
    [
      'a namespace that is being deleted',
      refuse(terminating),
      'namespace default is being deleted, and its pods with it: default/a',
    ],
    [
      'two budgets',
      refuse({ code: 500, reason: '', message: twoBudgets }),
      `the eviction of default/a is refused: ${twoBudgets}`,
    ],
    [
      'a right that is missing',
      refuse({ code: 403, reason: 'Forbidden', message: 'no' }),
      'the eviction of default/a is refused: no',
    ],
    [
      'an overloaded server',
      refuse({ code: 429, reason: 'TooManyRequests', message: 'busy' }),
      'the eviction of default/a waits for the API server: busy',
    ],
    [
      'no answer',
      new TransportError('reset'),
      'the eviction of default/a waits for the API server: reset',
    ],
    ['a pod that is gone', refuse({ code: 404, reason: 'NotFound' }), undefined],
    ['another pod under its name', refuse({ code: 409, reason: 'Conflict' }), undefined],
  ])('%s: is told, and tried again until the pod is gone', async (_name, error, blockedBy) => {
    const rig = await drain([['a']], {}, (api) => {
      api.onEvict = () => {
        throw error;
      };
    });
    expect(rig.progress.at(-1)).toEqual({
      left: 1,
      pods: ['default/a'],
      ...(blockedBy ? { blockedBy } : {}),
    });
    await rig.clock.advance(1_000);
    expect(rig.api.evictions).toHaveLength(2);
    rig.api.remove('default/a');
    expect(await rig.done).toBe('drained');
  });

  test.each<[string, (pod: string) => Error]>([
    ['a server in trouble', () => new TransportError('reset')],
    [
      'a server that refuses all alike',
      (pod) => refuse({ code: 403, reason: 'Forbidden', message: `pods "${pod}" is forbidden` }),
    ],
  ])('%s is asked by one pod for all', async (_name, errorOf) => {
    const rig = await drain([['a'], ['b'], ['c']], {}, (api) => {
      api.onEvict = ({ pod }) => {
        throw errorOf(pod.replace('default/', ''));
      };
    });
    await rig.clock.advance(3_000);
    expect(namesOf(rig)).toEqual(['a', 'b', 'c', 'a', 'b']);
    expect(rig.progress.at(-1)?.blockedBy).toMatch(
      /^the eviction of default\/a, default\/b, default\/c /,
    );
  });

  test('a refusal that names another port each time has one line, growing pauses, and is told once', async () => {
    let port = 30_000;
    const rig = await drain([['a'], ['b'], ['c']], {}, (api) => {
      api.onEvict = () => {
        throw refuse({
          code: 500,
          reason: 'InternalError',
          message: `read tcp 10.0.0.1:${port++}->10.0.0.2:443: reset`,
        });
      };
    });
    const told = rig.progress.length;
    await rig.clock.advance(15_000);
    expect(rig.api.evictions).toHaveLength(7);
    expect(rig.progress).toHaveLength(told);
  });
});

test('of many pods that wait for one thing only some are named', async () => {
  const pods = Array.from({ length: 9 }, (_, i): [string] => [`web-${i}`]);
  const rig = await drain(pods, {}, closed);
  const text =
    /^PodDisruptionBudget default\/web blocks default\/web-0, .*, default\/web-4 and 4 more: it needs/;
  expect(rig.progress.at(-1)?.blockedBy).toMatch(text);
});

/** Tests how often an agent repeats and logs a request that the API server refuses. */
import { expect, test } from 'vitest';
import { MemoryStore, viewOf } from '../../test/agent/memory-object.ts';
import {
  after,
  airgap,
  journalAt,
  key,
  NEW,
  running,
  signalAt,
} from '../../test/support/builders/agent-situations.ts';
import { refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { decodeReport, decodeSignal } from '../signal/annotations.ts';
import { rfc3339 } from '../util/clock.ts';
import { silentLogger } from '../util/log.ts';
import { Agent, type AgentParts } from './agent.ts';
import { IDLE, type Journal } from './journal.ts';

const MINUTE_MS = 60_000;
/** A condition that a kubelet reported long before the restart. */
const STALE = { type: 'Ready', status: 'True', lastHeartbeatTime: '2020-01-01T00:00:00Z' };

interface Watched {
  readonly tries: number[];
  readonly lines: string[];
  readonly statuses: readonly string[];
}

interface More extends Partial<Omit<AgentParts, 'clock'>> {
  readonly meanwhile?: (store: MemoryStore) => void;
  readonly clock?: FakeClock;
}

/**
 * Runs an agent whose report or uncordon is refused for `refusedMs`. `meanwhile` runs when the agent asks who cordons.
 */
async function runWith(
  journal: Journal,
  refusedMs: number,
  error: Error,
  { meanwhile, clock = new FakeClock(), ...more }: More = {},
): Promise<Watched> {
  const store = new MemoryStore();
  store.send(
    journal === IDLE
      ? airgap
      : signalAt(journal.phase === 'restarted' ? 'Restart' : 'UnCordoning', key),
  );
  const tries: number[] = [];
  const lines: string[] = [];
  const attempt = (): void => {
    tries.push(clock.monotonic());
    if (clock.monotonic() < refusedMs) throw error;
  };
  if (journal === IDLE) store.beforeWrite = attempt;
  const say = (message: string): void => void lines.push(message);
  const agent = new Agent({
    object: viewOf(store),
    maintenance: {
      whoCordons: async () => {
        meanwhile?.(store);
        return await Promise.resolve('self');
      },
      readNode: async () => await Promise.resolve(undefined),
      hasCordon: async () => await Promise.resolve(true),
      cordonAndDrain: async () => await Promise.resolve(),
      uncordon: async () => await Promise.resolve(),
    },
    loadJournal: async () => await Promise.resolve(journal),
    saveJournal: async () => await Promise.resolve(),
    observe: async () => await Promise.resolve({}),
    searchService: () => undefined,
    ageOf: async () => await Promise.resolve(0),
    perform: async ({ kind }) => {
      if (kind !== 'uncordon') return await Promise.resolve({ ok: true });
      try {
        attempt();
        return { ok: true };
      } catch (error) {
        return { ok: false, reason: 'refused', error };
      }
    },
    times: { restartTimeoutMs: 1, soakMs: 1, readyTimeoutMs: 1 },
    accepts: [],
    clock,
    random: () => 0.5,
    log: { ...silentLogger, info: say, warn: say, error: say },
    ...more,
  });
  const stop = new AbortController();
  const running = agent.run(stop.signal);
  await clock.advance(refusedMs + MINUTE_MS);
  stop.abort();
  await running;
  return { tries, lines, statuses: store.statuses };
}

const CORDONED = journalAt('proven', { drain: 'done' });

test.each<[string, Journal, string]>([
  ['of a report', IDLE, 'FailedDownload'],
  ['of an uncordon', CORDONED, 'Completed'],
])(
  'a lasting refusal %s is tried and logged about once a minute, and its end is noticed within one',
  async (_, journal, status) => {
    const { tries, lines, statuses } = await runWith(
      journal,
      60 * MINUTE_MS,
      refusal(403, 'Forbidden'),
    );
    expect(statuses).toContain(status);
    expect(tries.length).toBeGreaterThan(1);
    expect(tries.length).toBeLessThan(100);
    expect(lines.filter((line) => line !== 'reported').length).toBeLessThan(70);
  },
);

test('a refusal of a server that has just started costs no more than it lasted', async () => {
  const { tries } = await runWith(IDLE, 3_000, refusal(403, 'Forbidden'));
  expect(tries.at(-1)).toBeLessThan(6_500);
});

test('a server that is away is asked every two seconds, and logged once a minute', async () => {
  const { tries, lines } = await runWith(IDLE, 10 * MINUTE_MS, new Error('connect ECONNREFUSED'));
  expect(tries.length).toBeGreaterThan(300);
  expect(lines.length).toBeLessThan(15);
});

test('an object that changed since the agent looked is not written, but looked at again', async () => {
  let changes = 3;
  const { lines, statuses } = await runWith(CORDONED, 0, new Error('never'), {
    meanwhile(store) {
      if (changes-- > 0) store.change({ annotations: { heartbeat: String(changes) } });
    },
  });
  expect(statuses).toContain('Completed');
  expect(lines).not.toContain('could not finish this step; retrying');
});

test('only the last report on a signal announces the agent, in the same write', async () => {
  const ends: string[] = [];
  const announcedAt: unknown[] = [];
  let isWatched = false;
  await runWith(CORDONED, 0, new Error('never'), {
    beforeLastReport: async (_signal, end) => {
      ends.push(end);
      return await Promise.resolve({ announced: 'yes' });
    },
    meanwhile(store) {
      if (isWatched) return;
      isWatched = true;
      store.watch(() => {
        const { annotations = {} } = store.object.metadata;
        const { status } = decodeSignal(annotations) ?? {};
        announcedAt.push([status?.status, annotations['announced']]);
      });
    },
  });
  expect(ends).toEqual(['Completed']);
  expect(announcedAt).toEqual([['Completed', 'yes']]);
});

test('a slow announcement delays the report by two seconds, and later attempts not at all', async () => {
  const clock = new FakeClock();
  let asked = 0;
  let completedAt: number | undefined;
  const { statuses, lines } = await runWith(CORDONED, 0, new Error('never'), {
    clock,
    beforeLastReport: async () => {
      asked++;
      return await new Promise<never>(() => undefined);
    },
    meanwhile(store) {
      store.beforeWrite = () => {
        if (completedAt === undefined) {
          completedAt = clock.monotonic();
          throw new Error('the first attempt gets no answer');
        }
      };
    },
  });
  expect(statuses).toContain('Completed');
  expect(asked).toBe(1);
  expect(completedAt).toBe(2_000);
  expect(lines.filter((line) => line.includes('announcement'))).toHaveLength(1);
  expect(clock.pending).toBe(0);
});

test('a socket that comes while the agent looks is asked at once', async () => {
  const looks: number[] = [];
  let came: () => void = () => undefined;
  let watching = 0;
  const clock = new FakeClock();
  await runWith(journalAt('restarted', { since: 0 }), -MINUTE_MS + 600, new Error('never'), {
    clock,
    times: { restartTimeoutMs: MINUTE_MS, soakMs: 1, readyTimeoutMs: 1 },
    observe: async () => {
      // The second observation is the first observation after the watch of the socket has begun.
      if (looks.push(clock.monotonic()) === 2) came();
      return await Promise.resolve({});
    },
    watchForSocket(listener) {
      came = listener;
      watching += 1;
      return () => void watching--;
    },
  });
  expect([looks[1], looks[2]]).toEqual([250, 250]);
  expect(watching).toBe(0);
});

test('a crash loop is reported while it happens, long before the time of the restart is up', async () => {
  const store = new MemoryStore();
  store.send(signalAt('Restart', key));
  let reported = '';
  let pid = 100;
  const reason = (): string =>
    decodeReport(store.object.metadata.annotations, key.created)?.reason ?? '';
  await runWith(journalAt('restarted', { since: 0, restartedAt: 0 }), 0, new Error('never'), {
    object: viewOf(store),
    times: { restartTimeoutMs: 10 * MINUTE_MS, soakMs: 1, readyTimeoutMs: 1 },
    // Every observation finds a new process, which has not answered.
    observe: async () => {
      reported ||= reason();
      pid += 1;
      return await Promise.resolve({ service: { pid, parent: 1, started: `${pid}` } });
    },
    accountOf: async () => await Promise.resolve({ end: 'exit code 1' }),
  });
  expect(reported).toMatch(
    /^(crash loop: )?the process of \S+ ended at least .*, last with exit code 1$/,
  );
  expect(reason()).toMatch(/^crash loop: the process of \S+ ended at least \d+ times in /);
  expect(store.statuses).toEqual(['Restart']);
});

test('while a leader drains or uncordons, k0s is not asked: on a worker each answer costs a request to the API server', async () => {
  const seen = { service: 0, leader: 0 };
  await runWith(journalAt('proven'), 10 * MINUTE_MS, new Error('never'), {
    observe: async () => await Promise.resolve({ problem: `${seen.service++}` }),
    maintenance: {
      whoCordons: async () => {
        seen.leader++;
        return await Promise.resolve('leader');
      },
    } as unknown as AgentParts['maintenance'],
  });
  expect(seen.leader).toBeGreaterThan(100);
  expect(seen.service).toBe(0);
});

test('a signal that cannot be carried out on this host is refused before anything is done', async () => {
  const veto: NonNullable<AgentParts['veto']> = {
    requireSha256: false,
    requireHttps: false,
    allowUnverified: true,
    allowedHosts: undefined,
    lowestVersion: undefined,
    refuseDowngrade: false,
    maxSignalAgeMs: 0,
  };
  const statusesWith = async (more: More): Promise<readonly string[]> => {
    const parts: More = { accepts: ['airgapupdate'], veto, ...more };
    return (await runWith(IDLE, 0, new Error('never'), parts)).statuses;
  };
  expect(await statusesWith({})).not.toContain('FailedDownload');
  expect(await statusesWith({ groundVeto: () => 'this host has cgroup v1' })).toEqual([
    'FailedDownload',
  ]);
});

test('on a controller the first heartbeat of its kubelet ends the wait for it before the next poll', async () => {
  const clock = new FakeClock();
  const store = new MemoryStore();
  store.send(signalAt('Restart', key));
  const node = new MemoryStore();
  const beat = (): void => {
    const lastHeartbeatTime = rfc3339(clock.now());
    node.change({ status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime }] } });
  };
  node.change({ status: { conditions: [STALE] } });
  clock.schedule(2_500, beat);
  let reportedAt: number | undefined;
  store.watch(() => {
    if (store.statuses.at(-1) === 'UnCordoning') reportedAt ??= clock.monotonic();
  });
  await runWith(journalAt('soaking', { fresh: after, since: 0 }), 0, new Error('never'), {
    clock,
    object: viewOf(store),
    ownNode: viewOf(node),
    observe: async () => await Promise.resolve(running(NEW, after)),
    ageOf: async () => await Promise.resolve(clock.monotonic() + 1_000),
    maintenance: {
      readNode: async () => await Promise.resolve(node.object),
      whoCordons: async () => await Promise.resolve('leader'),
    } as unknown as AgentParts['maintenance'],
    times: { restartTimeoutMs: 1, soakMs: 1, readyTimeoutMs: 10 * MINUTE_MS },
  });
  expect(reportedAt).toBe(2_500);
});

test('a heartbeat of the Node wakes no agent that watches no process', async () => {
  const clock = new FakeClock();
  const node = new MemoryStore();
  let asked = 0;
  clock.schedule(2_500, () => node.change({ annotations: { heartbeat: 'now' } }));
  await runWith(journalAt('proven'), 0, new Error('never'), {
    clock,
    ownNode: viewOf(node),
    maintenance: {
      whoCordons: async () => {
        asked++;
        return await Promise.resolve('leader');
      },
    } as unknown as AgentParts['maintenance'],
  });
  // The agent asks at its start and then every five seconds.
  expect(asked).toBe(13);
});

/** Tests that a crash loop is reported while it happens, and that the report changes nothing else. */
import { expect, test } from 'vitest';
import { MemoryStore, viewOf } from '../../../test/agent/memory-object.ts';
import { journalAt, key, signalAt } from '../../../test/support/builders/agent-situations.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { decodeReport, decodeSignal, encodeReport } from '../../signal/annotations.ts';
import { silentLogger } from '../../util/log.ts';
import type { UpdatePhase } from '../journal.ts';
import type { SupervisorAccount } from '../service/crash-story.ts';
import { crashReporter } from './crash-report.ts';

interface Seen {
  readonly exits?: number;
  readonly phase?: UpdatePhase;
}

function rig(accountOf: () => SupervisorAccount | undefined, status = 'Restart') {
  const clock = new FakeClock();
  const store = new MemoryStore();
  const signal = signalAt(status, key);
  const { created } = signal;
  store.send(signal, encodeReport({ created, from: 'v1', spent: { Downloading: 7 } }));
  const asked: number[] = [];
  const tell = crashReporter({
    object: viewOf(store),
    clock,
    log: silentLogger,
    accountOf: async () => {
      asked.push(clock.monotonic());
      return await Promise.resolve(accountOf());
    },
  });
  const { annotations } = store.object.metadata;
  return {
    clock,
    store,
    asked,
    report: () => decodeReport(store.object.metadata.annotations, created),
    look: async ({ exits, phase = 'restarted' }: Seen = {}): Promise<void> => {
      const journal = journalAt(phase, { since: 0, restartedAt: 0 });
      const host = exits === undefined ? {} : { exits };
      await tell(journal, decodeSignal(annotations), { host, now: clock.monotonic() });
    },
  };
}

test('each further end of the process is reported with its count and exit code, beside the earlier report', async () => {
  let restarts = 1;
  const { look, clock, report } = rig(() => ({ restarts, end: 'exit code 1' }));
  await clock.advance(2_000);
  await look({ exits: 1 });
  expect(report()).toEqual({
    created: key.created,
    from: 'v1',
    spent: { Downloading: 7 },
    reason: expect.stringMatching(/^the process of \S+ ended once in 2 s, last with exit code 1$/),
  });
  restarts = 3;
  await clock.advance(5_000);
  await look({ exits: 1 });
  expect(report()?.reason).toMatch(
    /^crash loop: the process of \S+ ended 3 times in 7 s, last with exit code 1$/,
  );
});

test('the Node is not written for the time alone, and the supervisor is asked every 5 s at most', async () => {
  const { look, clock, store, asked } = rig(() => ({ restarts: 1 }));
  await look({ exits: 1 });
  const { resourceVersion } = store.object.metadata;
  for (let second = 0; second < 20; second++) {
    await clock.advance(1_000);
    await look({ exits: 1 });
  }
  expect(store.object.metadata.resourceVersion).toBe(resourceVersion);
  expect(asked).toEqual([0, 5_000, 10_000, 15_000, 20_000]);
});

test('a process that the agent was too slow to see is known from its supervisor', async () => {
  const { look, clock, report, asked } = rig(() => ({ restarts: 4, end: 'signal 11' }));
  await look();
  expect(asked).toEqual([]);
  await clock.advance(5_000);
  await look();
  expect(report()?.reason).toContain('ended 4 times in 5 s, last with signal 11');
});

test.each<[string, Seen, string | undefined]>([
  ['a service that starts', {}, undefined],
  ['another phase of the update', { exits: 2, phase: 'soaking' }, undefined],
  ['another status', { exits: 2 }, 'UnCordoning'],
])('no crash is reported if the agent sees %s', async (_name, seen, status) => {
  const { look, clock, report } = rig(() => ({}), status);
  await clock.advance(10_000);
  await look(seen);
  expect(report()?.reason).toBeUndefined();
});

test('an API server that refuses the report is asked again later, and nothing fails', async () => {
  const { look, clock, store, report } = rig(() => ({ restarts: 2 }));
  store.beforeWrite = () => {
    throw new Error('connect ECONNREFUSED');
  };
  await look({ exits: 2 });
  expect(report()?.reason).toBeUndefined();
  store.beforeWrite = () => undefined;
  await clock.advance(5_000);
  await look({ exits: 2 });
  expect(report()?.reason).toContain('ended 2 times');
});

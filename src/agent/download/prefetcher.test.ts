/**
 * Tests when an agent starts to prefetch: at a random moment within the time that the leader gives, which has a
 * maximum.
 */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { buildVeto } from '../../../test/support/builders/vetoes.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { silentLogger } from '../../util/log.ts';
import type { ServiceFacts } from '../service/host.ts';
import { createPrefetcher, type Prefetcher } from './prefetcher.ts';

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;
const COMMAND = {
  id: 1,
  kind: 'k0supdate',
  url: 'https://example.com/k0s',
  version: 'v2',
  sha256: 'ab',
} as const;
const ANYTHING = buildVeto({ allowUnverified: true });
const HOST: ServiceFacts = {
  binary: '/usr/local/bin/k0s',
  running: { version: 'v1', current: true, process: { pid: 1, started: '1', parent: 0 } },
};

function prefetcher(clock: FakeClock): {
  readonly steps: string[];
  readonly prefetcher: Prefetcher;
} {
  const steps: string[] = [];
  const prefetcher = createPrefetcher({
    observe: async () => await Promise.resolve(HOST),
    perform: async ({ kind }) => {
      steps.push(kind);
      return await Promise.resolve({ ok: true });
    },
    veto: ANYTHING,
    beside: 'replace',
    clock,
    random: () => 0.5,
    log: silentLogger,
  });
  return { steps, prefetcher };
}

test.each([
  ['after those of the nodes whose turn it is if no time is given', {}, SECOND],
  ['in the middle of the given time, as chance has it', { spreadMs: 2 * MINUTE }, SECOND + MINUTE],
  ['within ten minutes, whatever somebody wrote', { spreadMs: 24 * HOUR }, SECOND + 5 * MINUTE],
])('a download ahead begins %s', async (_when, policy, afterMs) => {
  const clock = new FakeClock(0);
  const { steps, prefetcher: ahead } = prefetcher(clock);
  ahead.follow({ rollout: 'uid', command: COMMAND, policy });
  await setImmediate();
  await clock.advance(afterMs - 1);
  expect(steps).toEqual([]);
  await clock.advance(1);
  await setImmediate();
  expect(steps).toEqual(['download', 'trial-run']);
});

test('a download ahead does not begin if it is no longer asked for', async () => {
  const clock = new FakeClock(0);
  const { steps, prefetcher: ahead } = prefetcher(clock);
  ahead.follow({ rollout: 'uid', command: COMMAND, policy: { spreadMs: 2 * MINUTE } });
  await setImmediate();
  await ahead.stop();
  await clock.advance(2 * MINUTE);
  expect(steps).toEqual([]);
});

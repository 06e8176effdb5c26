/** Tests how process ends are counted for people: the count is the smallest number that is certain. */
import { expect, test } from 'vitest';
import {
  after,
  before,
  hanging,
  journalAt,
  NEW,
  OLD,
  running,
  silent,
  third,
} from '../../../test/support/builders/agent-situations.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import type { Journal } from '../journal.ts';
import { countExits } from '../observe.ts';
import type { ProcessId, ServiceFacts } from './host.ts';

const restarted = journalAt('restarted', { process: before });
const soaking = journalAt('soaking', { process: before, fresh: after });

interface Moment {
  readonly host: ServiceFacts;
  /** The process that a search for the service would find; undefined if it would find no process. */
  readonly found?: ProcessId;
  readonly journal?: Journal;
}

/** Returns the count after each moment. The moments are one second apart, so that a search is allowed at each of them. */
async function countOver(...moments: Moment[]): Promise<(number | undefined)[]> {
  const clock = new FakeClock();
  let found: ProcessId | undefined;
  const count = countExits({ clock, searchService: () => found });
  const counts: (number | undefined)[] = [];
  for (const { host, journal = restarted, ...moment } of moments) {
    found = moment.found;
    counts.push(count(host, journal).exits);
    await clock.advance(1_000);
  }
  return counts;
}

test.each<[string, Moment[], (number | undefined)[]]>([
  [
    'none if only the old process ends',
    [{ host: running(OLD, before) }, { host: silent }],
    [undefined, undefined],
  ],
  [
    'none if the new process starts and stays',
    [{ host: silent, found: after }, { host: running(NEW, after) }],
    [undefined, undefined],
  ],
  [
    'those that end one after the other',
    [{ host: silent, found: after }, { host: hanging(third) }],
    [undefined, 1],
  ],
  [
    'none for a process that is gone only perhaps',
    [{ host: silent, found: after }, { host: silent }],
    [undefined, undefined],
  ],
  [
    'the process under watch',
    [
      { host: running(NEW, after), journal: soaking },
      { host: silent, journal: soaking },
    ],
    [undefined, 1],
  ],
  [
    'the process whose place another takes',
    [
      { host: running(NEW, after), journal: soaking },
      { host: running(NEW, third), journal: soaking },
    ],
    [undefined, 1],
  ],
  [
    'a process before the one under watch',
    [
      { host: silent, found: third },
      { host: running(NEW, after), journal: soaking },
    ],
    [undefined, 1],
  ],
  [
    'another restart begins',
    [
      { host: hanging(third) },
      { host: silent, journal: journalAt('swappedBack') },
      { host: hanging(after) },
    ],
    [undefined, undefined, undefined],
  ],
])('how many processes ended after the restart: %s', async (_name, moments, counts) =>
  expect(await countOver(...moments)).toEqual(counts),
);

test('staleness counts from the first answer that is missing, and ends with an answer', async () => {
  const clock = new FakeClock();
  const count = countExits({ clock, searchService: () => undefined });
  const silentFor: (number | undefined)[] = [];
  for (const host of [
    running(NEW, after),
    hanging(after),
    hanging(after),
    running(NEW, after),
    hanging(after),
  ]) {
    silentFor.push(count(host, soaking).unansweredMs);
    await clock.advance(60_000);
  }
  expect(silentFor).toEqual([undefined, 0, 60_000, undefined, 0]);
});

test('time without an API server does not count as staleness, which begins anew after it', async () => {
  const clock = new FakeClock();
  const count = countExits({ clock, searchService: () => undefined });
  const silentFor: (number | undefined)[] = [];
  for (const isApiAway of [false, false, true, true, false, false]) {
    silentFor.push(count(hanging(after), soaking, isApiAway).unansweredMs);
    await clock.advance(40_000);
  }
  expect(silentFor).toEqual([0, 40_000, undefined, undefined, 0, 40_000]);
});

test('the process table is searched four times a second at most, and only where nothing else is known', async () => {
  const clock = new FakeClock();
  let searches = 0;
  const searchService = (): undefined => {
    searches++;
    return undefined;
  };
  const count = countExits({ clock, searchService });
  count(silent, restarted);
  count(silent, restarted);
  expect(searches).toBe(1);
  await clock.advance(250);
  count(hanging(after), restarted);
  count(silent, journalAt('swapped'));
  expect(searches).toBe(1);
  count(silent, restarted);
  expect(searches).toBe(2);
});

/**
 * Tests that no signal is lost, and that no signal is obeyed too late, if the clock of the host is wrong. The cause may
 * be a bad battery or a false time server.
 */
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { Builds, NEW, Place } from '../agent/in-process.ts';
import { buildVeto } from '../support/builders/vetoes.ts';
import { SkewedClock } from '../support/clock/skewed-clock.ts';

const DAY = 86_400_000;
const VETO = buildVeto({ maxSignalAgeMs: 7 * DAY });

let warnings: string[];
const log = { ...silentLogger, warn: (message: string): void => void warnings.push(message) };

async function placeAt(clock: SkewedClock): Promise<Place> {
  warnings = [];
  const builds = await Builds.start();
  onTestFinished(async () => await builds[Symbol.asyncDispose]());
  const place = await Place.start('n1', builds);
  onTestFinished(async () => await place[Symbol.asyncDispose]());
  const url = `${builds.server.url}/good`;
  const command = {
    id: 0,
    kind: 'k0supdate',
    url,
    version: NEW,
    sha256: builds.server.sha256('/good'),
  } as const;
  place.store.send({ planId: 'p', created: new Date().toISOString(), command });
  place.startAgent(undefined, { veto: VETO, clock, log });
  return place;
}

test('in 1970 a signal waits, and is carried out once the clock is right', async () => {
  const clock = new SkewedClock(systemClock, { offset: -Date.now() });
  const place = await placeAt(clock);
  await place.until(() => expect(warnings).toContain('waiting for the clock'));
  expect(place.store.statuses).toEqual([]);
  const said = (): string =>
    place.store.object.metadata.annotations?.['upgrade.refit.dev/agent-report'] ?? '';
  await place.until(() => expect(said()).toContain("the time on this host's clock"));
  clock.jump(Date.now());
  await place.ended();
  expect(place.store.statuses.at(-1)).toBe('Completed');
  expect(said()).not.toContain('clock');
});

test.each([
  ['stays in 1970, after ten minutes', 1_000, -Date.now()],
  ['is ahead by eight days, at once', 1, 8 * DAY],
])('a clock that %s: refused, and the clock is named', async (_name, rate, offset) => {
  const place = await placeAt(new SkewedClock(systemClock, { rate, offset }));
  await place.ended();
  expect(place.store.statuses).toEqual(['FailedDownload']);
  expect(place.store.object.metadata.annotations?.['upgrade.refit.dev/agent-report']).toContain(
    "the time on this host's clock",
  );
});

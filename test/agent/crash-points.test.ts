/**
 * Tests that an agent may die before any of its effects. The next agent then completes the work and does nothing twice.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { WHOLE } from '../support/whole.ts';
import { Fuse } from './fuse.ts';
import { Builds, NEW, OLD, Place } from './in-process.ts';

let builds: Builds;
beforeAll(async () => {
  builds = await Builds.start();
});
afterAll(async () => await builds[Symbol.asyncDispose]());

type Payload = '/good' | '/wrong' | '/crashes-later' | '/bundle.tar';

interface Effects {
  readonly count: number;
  /** The index of the first effect after the request to restart the service; Infinity for a bundle. */
  readonly restart: number;
}

/** Sends one signal. The first agent dies before effect `at`, and the second agent completes the work. */
async function run(
  path: Payload,
  at: number,
  expectEnd: (place: Place) => Promise<void>,
): Promise<Effects> {
  await using place = await Place.start(`${path.slice(1, 9)}${at}`, builds);
  place.send(path, path === '/bundle.tar' ? { kind: 'airgapupdate' } : {});
  const first = new Fuse(at);
  let restart = Infinity;
  place.store.watch(() => {
    if (place.store.statuses.at(-1) === 'Restart') restart = Math.min(restart, first.effects);
  });
  place.startAgent(first);
  await Promise.race([place.ended(), once(first.dead.signal, 'abort')]);
  expect([await oldHash(), builds.server.sha256(path)]).toContain(await sha256(place.host.binary));
  place.startAgent();
  await place.ended();
  await expectEnd(place);
  return { count: first.effects, restart };
}

/**
 * Before the restart, bad builds cause the same effects as good builds. So the test samples only some of these effects
 * for bad builds.
 */
const SHARE = WHOLE ? 1 : 8;
/**
 * Both bad builds are rolled back in the same way. So the test kills the agent of each build at every second effect
 * after the restart, alternately.
 */
const TURNS: readonly Payload[] = WHOLE ? [] : ['/wrong', '/crashes-later'];

function isSampled(path: Payload, at: number, restart: number): boolean {
  if (path !== '/wrong' && path !== '/crashes-later') return true;
  if (at < restart) return at % SHARE === 0;
  return WHOLE || (at - restart) % TURNS.length === TURNS.indexOf(path);
}

async function surviveEveryCrash(
  path: Payload,
  least: number,
  expectEnd: (place: Place) => Promise<void>,
): Promise<void> {
  const { count, restart } = await run(path, Infinity, expectEnd);
  expect(count).toBeGreaterThan(least);
  for (let at = 0; at < count; at++) {
    if (!isSampled(path, at, restart)) continue;
    try {
      await run(path, at, expectEnd);
    } catch (error) {
      throw new Error(`killed before effect ${at} of ${count}`, { cause: error });
    }
  }
}

async function sha256(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}

const oldHash = async (): Promise<string> => await sha256(join(builds.directory, 'old'));
const served = ({ host }: Place): unknown[] =>
  builds.server.requests.filter(({ node }) => node === host.name);

async function expectUpdated({ host, store, node, report }: Place): Promise<void> {
  expect(store.statuses, report?.reason).toEqual([...SIGNAL_STATUSES]);
  expect(await host.version()).toBe(NEW);
  expect(host.starts).toBe(2);
  expect(await sha256(host.binary)).toBe(builds.server.sha256('/good'));
  expect(node.drains).toBeGreaterThan(0);
}

/** A build that crashes and starts again may start any number of times before it is replaced. */
const expectRolledBack =
  (because: RegExp, leastStarts: number) =>
  async ({ host, store, report }: Place): Promise<void> => {
    expect(store.statuses).toEqual([
      'Downloading',
      'Cordoning',
      'ApplyingUpdate',
      'Restart',
      'Failed',
    ]);
    expect(report).toMatchObject({ rolledBack: true, reason: expect.stringMatching(because) });
    expect(await host.version()).toBe(OLD);
    expect(host.starts).toBeGreaterThanOrEqual(leastStarts);
    expect(await sha256(host.binary)).toBe(await oldHash());
  };

async function expectCleanedUp(place: Place): Promise<void> {
  const { store, host, node } = place;
  expect(served(place)).toMatchObject([{ complete: true }]);
  expect(node).toMatchObject({ isCordoned: false, wasTouchedUncordoned: false });
  expect(store.object.metadata.annotations).toMatchObject({ theirs: 'kept' });
  expect((await readdir(join(host.directory, 'bin'))).toSorted()).toEqual(['k0s', 'k0s.previous']);
  expect(await sha256(`${host.binary}.previous`)).toBe(await oldHash());
  expect((await readdir(host.stateDirectory)).toSorted()).toEqual([
    'journal.json',
    'journal.json.spare',
  ]);
}

test.each([
  ['an update', '/good', expectUpdated],
  ['a roll-back after the restart', '/wrong', expectRolledBack(/\.wrong/, 3)],
  [
    'a roll-back in the soak',
    '/crashes-later',
    expectRolledBack(/^crash loop: the process of .* ended/, 3),
  ],
] as const)(
  '%s ends correctly although the agent crashes before any of its actions',
  { timeout: 300_000 },
  async (_name, path, expectEnd) => {
    await surviveEveryCrash(path, 30, async (place) => {
      await expectEnd(place);
      await expectCleanedUp(place);
    });
  },
);

test('an airgap bundle is placed correctly although the agent crashes before any of its actions', {
  timeout: 300_000,
}, async () => {
  await surviveEveryCrash('/bundle.tar', 7, async (place) => {
    const { store, host, images } = place;
    expect(store.statuses).toEqual(['Downloading', 'Completed']);
    expect(served(place)).toMatchObject([{ complete: true }]);
    expect(await readdir(images)).toEqual(['bundle.tar']);
    expect(await sha256(join(images, 'bundle.tar'))).toBe(builds.server.sha256('/bundle.tar'));
    // The host already had `worker-profile.yaml`, a file of k0s.
    expect((await readdir(dirname(images))).toSorted()).toEqual(['images', 'worker-profile.yaml']);
    expect((await readdir(host.stateDirectory)).toSorted()).toEqual([
      'airgap-bundles.json',
      'journal.json',
      'journal.json.spare',
    ]);
    expect(host.starts).toBe(1);
  });
});

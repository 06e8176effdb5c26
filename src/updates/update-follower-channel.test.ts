/** Tests how a leader uses its channel: with hostile and silent servers, with tokens, and with skewed clocks. */
import { beforeEach, expect, test, vi } from 'vitest';
import type { Script } from '../../test/faults/stub-server.ts';
import { refusal } from '../../test/support/builders/memory-api.ts';
import {
  beginAnew,
  DAY,
  follow,
  indexOf,
  lead,
  MINUTE,
  offering,
  planned,
  reported,
  START,
  serve,
  world,
} from '../../test/support/builders/update-leaders.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { rfc3339 } from '../util/clock.ts';

beforeEach(beginAnew);

/**
 * Returns the client of a leader whose process ends after its first write, before it reports the answer of the update
 * server.
 */
function dyingAfterOneWrite(): KubeClient {
  let writes = 0;
  const patch: KubeClient['patch'] = async (...given) => {
    if (writes++ > 0) throw new Error('the process ended');
    return await world.api.client.patch(...given);
  };
  return { ...world.api.client, patch };
}

test.each<readonly [string, Script, string, RegExp]>([
  [
    'HTML with 200',
    (_, response) => response.end('<html>login</html>'),
    'CheckFailed',
    /sent HTML instead of an index/,
  ],
  [
    'a lying length',
    (_, response) => response.writeHead(200, { 'content-length': 999 }).end('x'),
    'CheckFailed',
    /the download was interrupted/,
  ],
  ['an error', (_, response) => response.writeHead(503).end(), 'CheckFailed', /answered 503/],
  [
    'an older release',
    (_, response) => response.end(indexOf('v1.35.9+k0s.0')),
    'Downgrade',
    /never downgrades by itself/,
  ],
  [
    'a withdrawn release',
    (_, response) => response.end(indexOf('v1.36.1', { withdrawn: { 'v1.36.1': 'bad' } })),
    'Withdrawn',
    /was withdrawn: bad/,
  ],
  [
    'a minor version skipped, and none between',
    ({ url }, response) =>
      url.includes('/v1.37/') ? response.writeHead(404).end() : response.end(indexOf('v1.38.0')),
    'SkippedMinor',
    /offer a release of v1.37 first \(.*answered 404/,
  ],
  [
    'no files',
    (_, response) => response.end(JSON.stringify({ version: 'v1.36.1', downloadURLs: [] })),
    'NoDownload',
    /has no k0s binary of v1.36.1/,
  ],
])('a server with %s: a Warning, and no Plan', async (_name, script, reason, message) => {
  follow(await serve(script));
  const leader = lead();
  await leader.follow();
  await leader.follow();
  expect(leader.events).toEqual([
    { type: 'Warning', reason, message: expect.stringMatching(message) },
  ]);
  expect(reported()).toMatchObject({ reason, message: expect.stringMatching(message) });
  expect(planned()).toBeUndefined();
});

test('an unreachable server is asked again, more and more seldom, and then works', async () => {
  let isUp = false;
  follow(
    await serve((_, response) =>
      isUp ? response.end(indexOf('v1.36.1+k0s.0')) : response.socket?.destroy(),
    ),
  );
  const leader = lead();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 7; attempt++) {
    waits.push(Math.round((await leader.follow()) / 1_000));
    await world.clock.advance((waits.at(-1) ?? 0) * 1_000);
  }
  expect(waits).toEqual([23, 45, 90, 180, 360, 450, 450]);
  expect([leader.events.length, reported()?.reason]).toEqual([1, 'CheckFailed']);
  isUp = true;
  await leader.follow();
  expect([planned(), reported()?.reason]).toEqual(['v1.36.1+k0s.0', 'UpdateStarted']);
});

test('leaders that end while they ask a channel ask it more and more seldom, and a good answer ends that', async () => {
  let asked = 0;
  let isGood = false;
  const server = await offering(() => {
    asked++;
    return isGood ? indexOf('v1.36.0+k0s.0') : 'x';
  });
  follow(server);
  const pauses: number[] = [];
  for (let term = 0; term < 4; term++) {
    await lead({ writer: dyingAfterOneWrite() })
      .follow()
      .catch(() => undefined);
    const before = asked;
    const pause = await lead().follow();
    expect(asked).toBe(before);
    pauses.push(pause);
    await world.clock.advance(pause);
  }
  expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
  expect(new Set(pauses).size).toBe(4);
  isGood = true;
  await lead().follow();
  expect(reported()).not.toHaveProperty('failures');
});

test('leaders that follow each other within a minute report the same good answer, and count no failure', async () => {
  follow(await offering(() => indexOf('v1.36.0+k0s.0')));
  for (let term = 0; term < 3; term++) {
    const leader = lead();
    await leader.follow();
    expect(reported()?.reason).toBe('UpToDate');
    expect(reported()).not.toHaveProperty('failures');
    expect(leader.events).toHaveLength(term === 0 ? 1 : 0);
  }
});

test.each([false, true])(
  'a term that ends while it asks a channel leaves no failure behind (with an earlier report: %s)',
  async (hasReported) => {
    const stop = new AbortController();
    let isSilent = false;
    const script: Script = (_, response) => {
      if (isSilent) stop.abort(new Error('the controller stops'));
      else response.end(indexOf('v1.36.0+k0s.0'));
    };
    follow(await serve(script));
    if (hasReported) await lead().follow();
    const before = reported();
    isSilent = true;
    await expect(lead().follow(stop.signal)).rejects.toThrow('the controller stops');
    expect(reported()).toEqual(before);
    isSilent = false;
    await lead().follow();
    expect(reported()?.reason).toBe('UpToDate');
  },
);

test('a server that sends a byte now and then is given up after 10 s, and that is reported', async () => {
  let bytes = 0;
  follow(await serve((_, response) => void response.write('x', () => bytes++)));
  const leader = lead();
  const looking = leader.follow();
  await vi.waitFor(() => expect(bytes).toBe(1), 60_000);
  await world.clock.advance(10_000);
  await looking;
  const message = 'the update server did not finish its answer within 10 s';
  expect(leader.events).toEqual([{ type: 'Warning', reason: 'CheckFailed', message }]);
  expect([reported(), planned()]).toEqual([
    expect.objectContaining({ reason: 'CheckFailed', message }),
    undefined,
  ]);
});

test('a token that may not be read: a Warning with the name of the Secret, no request, and it works once it may be', async () => {
  let asked = 0;
  follow(
    await serve((_, response) => {
      asked++;
      response.end(indexOf('v1.36.1+k0s.0'));
    }),
  );
  world.api.before('get secrets/update-server-token', () => {
    throw refusal(403, 'Forbidden');
  });
  const leader = lead();
  await leader.follow();
  expect([leader.events.map(({ type, reason }) => [type, reason]), asked, planned()]).toEqual([
    [['Warning', 'CheckFailed']],
    0,
    undefined,
  ]);
  await world.clock.advance(MINUTE);
  await leader.follow();
  expect([reported()?.reason, planned()]).toEqual(['UpdateStarted', 'v1.36.1+k0s.0']);
});

test.each([-DAY, DAY])(
  'the clock of the last leader was off by %i ms: the status is renewed',
  async (skew) => {
    let offered = 'v1.36.0+k0s.0';
    follow(await offering(() => indexOf(offered)));
    world.clock = new FakeClock(START + skew);
    await lead().follow();
    world.clock = new FakeClock(START);
    await lead().follow();
    expect(reported()).toMatchObject({ reason: 'UpToDate', checkedAt: rfc3339(START) });
    offered = 'v1.36.1+k0s.0';
    expect(await lead().follow()).toBeLessThanOrEqual(10 * MINUTE);
    expect(planned()).toBe(offered);
  },
);

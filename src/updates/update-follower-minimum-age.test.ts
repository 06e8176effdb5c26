/** Tests that a release waits for its minimum age, and that the next leader does not count this age from zero again. */
import { beforeEach, expect, test } from 'vitest';
import {
  beginAnew,
  follow,
  HOUR,
  indexOf,
  lead,
  offering,
  planned,
  reported,
  START,
  world,
} from '../../test/support/builders/update-leaders.ts';
import { rfc3339 } from '../util/clock.ts';

beforeEach(beginAnew);

test('a release waits from its first sight, across leaders, and the report says until when', async () => {
  const server = await offering(() => indexOf('v1.36.4+k0s.0'));
  const annotations = { 'upgrade.refit.dev/minimum-release-age': '72h' };
  follow(server, {}, annotations);
  await lead().follow();
  const first = world.clock.now();
  expect(planned()).toBeUndefined();
  expect(reported()).toMatchObject({ reason: 'TooNew', seen: { 'v1.36.4+k0s.0': rfc3339(first) } });
  expect(reported()?.message).toContain(
    `v1.36.4+k0s.0 waits until ${rfc3339(first + 72 * HOUR)}, 72h after it was seen first`,
  );
  await world.clock.advance(71 * HOUR);
  const second = lead();
  const waitMs = await second.follow();
  expect(planned()).toBeUndefined();
  expect(waitMs).toBeLessThanOrEqual(HOUR);
  await world.clock.advance(first + 72 * HOUR - world.clock.now());
  await second.follow();
  expect(planned()).toBe('v1.36.4+k0s.0');
  expect(first).toBeGreaterThanOrEqual(START);
});

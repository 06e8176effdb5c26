/** Tests for which client refused tokens are counted: for an address, or, behind a proxy, for a token. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { createFailures } from './failures.ts';

test('an address waits after ten refused tokens, and another one does not', () => {
  const failures = createFailures(new FakeClock());
  for (let count = 0; count < 10; count++) failures.note({ address: '10.0.0.1' });
  expect(failures.waitOf({ address: '10.0.0.1' })).toBe(0);
  failures.note({ address: '10.0.0.1' });
  expect(failures.waitOf({ address: '10.0.0.1' })).toBeGreaterThan(0);
  expect(failures.waitOf({ address: '10.0.0.2' })).toBe(0);
});

test('behind a proxy one token waits, and others do not', () => {
  const failures = createFailures(new FakeClock());
  const stale = { address: '10.0.0.1', proxied: 'stale' };
  for (let count = 0; count < 11; count++) failures.note(stale);
  expect(failures.waitOf(stale)).toBeGreaterThan(0);
  expect(failures.waitOf({ address: '10.0.0.1', proxied: 'fresh' })).toBe(0);
});

test('behind a proxy a new token for each request is limited, too, and costs direct addresses nothing', () => {
  const failures = createFailures(new FakeClock());
  for (let count = 0; count < 11; count++) failures.note({ address: '10.0.0.9' });
  const invented = (count: number) => ({ address: '10.0.0.1', proxied: `token ${count}` });
  for (let count = 0; count < 2_000; count++) failures.note(invented(count));
  expect(failures.waitOf(invented(2_001))).toBeGreaterThan(0);
  // The failures of an address that still has to wait are remembered.
  expect(failures.waitOf({ address: '10.0.0.9' })).toBeGreaterThan(0);
});

test('the wait after refused tokens is at most six seconds, and it ends', async () => {
  const clock = new FakeClock();
  const failures = createFailures(clock);
  const sender = { address: '10.0.0.1' };
  await clock.advance(1000);
  for (let count = 0; count < 11; count++) failures.note(sender);
  expect(failures.waitOf(sender)).toBe(6);
  await clock.advance(5999);
  expect(failures.waitOf(sender)).toBe(1);
  await clock.advance(1);
  expect(failures.waitOf(sender)).toBe(0);
  failures.note(sender);
  expect(failures.waitOf(sender)).toBe(6);
});

test('the failures of 1024 addresses are counted, and the address that failed the longest time ago is forgotten', () => {
  const failures = createFailures(new FakeClock());
  const first = { address: '10.0.0.1' };
  const second = { address: '10.0.0.2' };
  for (const sender of [first, second])
    for (let count = 0; count < 11; count++) failures.note(sender);
  for (let count = 0; count < 1022; count++) failures.note({ address: `10.1.0.${count}` });
  expect(failures.waitOf(first)).toBeGreaterThan(0);
  // The first address fails again, so from now on the second one failed the longest time ago.
  failures.note(first);
  failures.note({ address: '10.2.0.1' });
  expect(failures.waitOf(second)).toBe(0);
  expect(failures.waitOf(first)).toBeGreaterThan(0);
});

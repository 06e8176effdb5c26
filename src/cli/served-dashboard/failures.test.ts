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

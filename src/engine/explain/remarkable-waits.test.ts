/** Tests which waits Conditions and Events report, and after how much time. */
import { expect, test } from 'vitest';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { Wait } from '../model/decision.ts';
import type { ReasonCode } from '../model/reasons.ts';
import { holdingOf, isRemarkable, SETTLE_MS, settledAfter } from './remarkable-waits.ts';

function wait(gate: string, code: ReasonCode = 'HealthCheckFailing', since = later(0)): Wait {
  return { gate, reason: { code, message: code }, since };
}

const HEALTH = wait('health');

test.each<[string, ReasonCode | undefined, boolean]>([
  ['health', undefined, true],
  ['slots', undefined, false],
  ['stages', undefined, false],
  ['working', undefined, false],
  ['intended', undefined, false],
  ['signalled', undefined, false],
  ['verifying', undefined, false],
  ['download', 'DownloadPending', false],
  ['control-plane', 'ControlPlaneUnknown', false],
])('the wait of the gate %s with the code %s: is it remarkable?', (gate, code, expected) => {
  expect(isRemarkable(wait(gate, code))).toBe(expected);
});

test('a remarkable wait is reported once it has lasted for ten seconds', () => {
  const younger = wait('window', 'WindowClosed', later(1000));
  const waits = [wait('slots'), younger, HEALTH];
  expect(holdingOf(waits, T0 + SETTLE_MS - 1)).toBeUndefined();
  expect(holdingOf(waits, T0 + SETTLE_MS)).toBe(HEALTH);
  expect(holdingOf([wait('slots')], T0 + SETTLE_MS)).toBeUndefined();
});

test('the time until the next report is that of the oldest wait that is not reported yet', () => {
  const second = wait('window', 'WindowClosed', later(4000));
  expect(settledAfter([second, HEALTH], T0 + 5000)).toBe(SETTLE_MS - 5000);
  expect(settledAfter([second, HEALTH], T0 + SETTLE_MS)).toBe(4000);
  expect(settledAfter([HEALTH], T0 + SETTLE_MS)).toBeUndefined();
  expect(settledAfter([wait('slots')], T0)).toBeUndefined();
});

/** Tests when a probe without an answer is repeated, and when it is reported. */
import { expect, test } from 'vitest';
import { because } from '../model/reasons.ts';
import { type ProbeBackoff, probeBackoff } from './probe-backoff.ts';

const REASON = because('CannotDecide', 'no answer');

test('the answer of a probe stays the same until the probe is due again', () => {
  const backoffs = probeBackoff();
  expect(backoffs.of('a', 0)).toBeUndefined();
  backoffs.add('a', REASON, 0);
  expect(backoffs.of('a', 1500)).toEqual({ reason: REASON, recheckMs: 500 });
  expect(backoffs.of('b', 1500)).toBeUndefined();
  expect(backoffs.of('a', 2000)).toBeUndefined();
});

test.each<
  [string, (backoffs: ProbeBackoff) => void, number, { recheckMs: number; isNew: boolean }]
>([
  ['for the first time', () => undefined, 2000, { recheckMs: 2000, isNew: true }],
  ['once more', (it) => it.add('a', REASON, 0), 2000, { recheckMs: 4000, isNew: false }],
  [
    'for another reason',
    (it) => it.add('a', because('CannotDecide', 'refused'), 0),
    2000,
    { recheckMs: 4000, isNew: true },
  ],
  ['long after', (it) => it.add('a', REASON, 0), 200_000, { recheckMs: 2000, isNew: true }],
  [
    'after an answer',
    (it) => {
      it.add('a', REASON, 0);
      it.forget('a');
    },
    2000,
    { recheckMs: 2000, isNew: true },
  ],
])('the pause after a probe that was asked in vain %s', (_, before, now, told) => {
  const backoffs = probeBackoff();
  before(backoffs);
  expect(backoffs.add('a', REASON, now)).toEqual({ reason: REASON, ...told });
});

/** Tests which remedy is told for a lock that Refit cannot take. */

import { expect, test } from 'vitest';
import { input } from '../../../test/support/builders/gate-inputs.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { locksTaken } from './locks-taken.ts';

const policy = buildPolicy({ coordinate: ['DisruptionLease'] });
const LOCK = { tool: 'DisruptionLease', others: [], isOurs: false, problem: 'Forbidden' } as const;

test.each([
  ['the command that prints a missing right', {}, /`refit install rights coordinate` prints/],
  ['no right, if a quota or an admission rule refuses it', { isBarred: true }, /take the lock$/],
])('a lock that cannot be taken names %s', (_, more, expected) => {
  const verdict = locksTaken.evaluate(
    withParts(input('worker'), { policy, outside: { locks: [{ ...LOCK, ...more }] } }),
  );
  expect(JSON.stringify(verdict)).toContain('OtherToolAtWork');
  expect(verdict).toMatchObject({ ends: expect.stringMatching(expected) as unknown });
});

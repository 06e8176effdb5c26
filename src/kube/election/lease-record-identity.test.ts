/** Tests that an identity starts with the host name and is a label value. */
import { expect, test } from 'vitest';
import { leaderIdentity } from './lease-record.ts';

test.each([
  ['controller-1.example.com', ['0123456789abcdef'], 'controller-1.example.com_0123456789abcdef'],
  ['a host!', ['Jane Doe', '17', 'ff'], 'a-host_Jane-Doe_17_ff'],
  [
    `${'h'.repeat(45)}-${'h'.repeat(200)}`,
    ['0123456789abcdef'],
    `${'h'.repeat(45)}_0123456789abcdef`,
  ],
  ['--a  host..', ['  Jane  Doe..  '], 'a-host_Jane-Doe'],
  [
    `${'h'.repeat(44)}..${'h'.repeat(200)}`,
    ['0123456789abcdef'],
    `${'h'.repeat(44)}_0123456789abcdef`,
  ],
  ['', ['0123456789abcdef'], '0123456789abcdef'],
])('%s with %j', (host, parts, expected) => {
  const identity = leaderIdentity(host, ...parts);
  expect(identity).toBe(expected);
  expect(identity).toMatch(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/);
});

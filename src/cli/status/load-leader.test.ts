/** Shows which state of the leader results from one read of the Lease, if clocks differ or a permission is missing. */

import { expect, test } from 'vitest';
import { refusal } from '../../../test/support/builders/memory-api.ts';
import { later, SECOND, T0 } from '../../../test/support/clock/times.ts';
import { LEADER_LEASE } from '../../dialects/autopilot/leader-lease.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Lease } from '../../kube/resources.ts';
import { askLeader, leaderOf, settled } from './load.ts';

function lease(spec: Lease['spec']): Lease {
  return {
    metadata: { name: 'a' },
    spec: { leaseDurationSeconds: 15, acquireTime: later(-60_000), ...spec },
  };
}

const held = { state: 'held', holder: 'abc', since: later(-60_000) };

test.each<[string, Lease | undefined, object]>([
  ['no lease', undefined, { state: 'none' }],
  ['a lease without a spec', { metadata: { name: 'a' } }, { state: 'none' }],
  [
    'a lease that was released',
    lease({ holderIdentity: '', renewTime: later(0) }),
    { state: 'none', since: later(0) },
  ],
  ['a lease that was just renewed', lease({ holderIdentity: 'abc', renewTime: later(0) }), held],
  [
    'the clock here is a minute behind',
    lease({ holderIdentity: 'abc', renewTime: later(60 * SECOND) }),
    held,
  ],
  [
    'at the end of its time',
    lease({ holderIdentity: 'abc', renewTime: later(-15 * SECOND) }),
    held,
  ],
  ...[16, 45].map((seconds): [string, Lease, object] => [
    `run out by less than clocks may differ: ${seconds} s`,
    lease({ holderIdentity: 'abc', renewTime: later(-seconds * SECOND) }),
    { state: 'late', holder: 'abc', since: later(-seconds * SECOND) },
  ]),
  [
    'run out for certain',
    lease({ holderIdentity: 'abc', renewTime: later(-46 * SECOND) }),
    { state: 'silent', holder: 'abc', since: later(-46 * SECOND) },
  ],
])('who leads by the Lease: %s', (_name, given, expected) => {
  expect(leaderOf(given, T0)).toEqual(expected);
});

test.each([
  ['may not be read', refusal(403, 'Forbidden'), { state: 'unknown' }],
  ['does not exist', refusal(404, 'NotFound'), { state: 'none' }],
])('a lease that %s stops nobody from looking at the plans', async (_name, error, expected) => {
  const client = { get: async () => await Promise.reject(error) } as unknown as KubeClient;
  expect(
    await askLeader({ client, lease: LEADER_LEASE, abort: new AbortController().signal }, T0),
  ).toEqual(expected);
});

test('a session whose dialects have no known lease knows no leader, and asks for none', async () => {
  const client = { get: () => expect.unreachable() } as unknown as KubeClient;
  const reading = { client, lease: undefined, abort: new AbortController().signal };
  expect(await askLeader(reading, T0)).toEqual({ state: 'unknown' });
});

test('a refusal to read the Lease for another reason is an error', async () => {
  const error = refusal(500, 'InternalError');
  const client = { get: async () => await Promise.reject(error) } as unknown as KubeClient;
  await expect(
    askLeader({ client, lease: LEADER_LEASE, abort: new AbortController().signal }, T0),
  ).rejects.toBe(error);
});

test('at the start of a watch a controller may be starting, too: that there is no leader is told later', () => {
  const none = { state: 'none' } as const;
  expect(settled(none, 0)).toEqual({ state: 'unknown' });
  expect(settled(none, 5 * SECOND - 1)).toEqual({ state: 'unknown' });
  expect(settled(none, 5 * SECOND)).toBe(none);
  const silent = { state: 'silent', holder: 'abc', since: later(0) } as const;
  expect(settled(silent, 0)).toBe(silent);
});

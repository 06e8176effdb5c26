/** Conformance of Leases: the pointers, times and bounds that an election relies on. */
import { type Case, get, merge, post, put } from './harness/case.ts';
import { LEASES, lease } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ONE = `${LEASES}/one`;
const making = (name: string, spec: object, more: { anyMessage?: boolean } = {}): Case => ({
  name,
  steps: [post(LEASES, lease('one', spec), more)],
});

const cases: readonly Case[] = [
  making('zero values that were given are kept', { holderIdentity: '', leaseTransitions: 0 }),
  making('nulls are as if not given', { holderIdentity: null, leaseTransitions: null, renewTime: null }),
  making('times with six digits are kept', {
    acquireTime: '2026-11-20T01:02:03.000004Z',
    renewTime: '2026-11-20T01:02:03.999999Z',
  }),
  making('times are brought to UTC', { renewTime: '2026-11-20T03:02:03.123456+02:00' }),
  making('times with three digits are refused', { renewTime: '2026-11-20T01:02:03.123Z' }, { anyMessage: true }),
  making('times without digits are refused', { renewTime: '2026-11-20T01:02:03Z' }, { anyMessage: true }),
  making('a duration of nothing is refused', { leaseDurationSeconds: 0 }),
  making('negative transitions are refused', { leaseTransitions: -1, leaseDurationSeconds: -2 }),
  making('the wrong types are refused', { leaseDurationSeconds: '15' }),
  making('fractions of seconds are refused', { leaseDurationSeconds: 1.5 }),
  {
    name: 'an election: take, renew, lose, take over',
    steps: [
      post(LEASES, lease('one', { holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0 }), {
        as: 'made',
      }),
      put(
        ONE,
        lease(
          'one',
          {
            holderIdentity: 'a',
            leaseDurationSeconds: 15,
            renewTime: '2026-11-20T01:02:03.123456Z',
            leaseTransitions: 0,
          },
          { resourceVersion: '{made.metadata.resourceVersion}' },
        ),
        { as: 'renewed' },
      ),
      put(ONE, lease('one', { holderIdentity: 'b' }, { resourceVersion: '{made.metadata.resourceVersion}' })),
      put(
        ONE,
        lease(
          'one',
          { holderIdentity: 'b', leaseDurationSeconds: 15, leaseTransitions: 1 },
          { resourceVersion: '{renewed.metadata.resourceVersion}' },
        ),
      ),
      get(ONE),
    ],
  },
  {
    name: 'a Lease has no status',
    steps: [post(LEASES, lease('one')), get(`${ONE}/status`), merge(`${ONE}/status`, { status: {} })],
  },
];

conformance('lease', cases);

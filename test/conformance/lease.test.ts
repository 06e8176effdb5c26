/** Tests the conformance of Leases: the optional fields, times and bounds that an election needs. */
import { get, merge, post, put, type Step } from './harness/case.ts';
import { LEASES, lease } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ONE = `${LEASES}/one`;
const making = (spec: object, more: { anyMessage?: boolean } = {}): Step[] => [
  post(LEASES, lease('one', spec), more),
];

const testCase = conformance('lease');

testCase(
  'zero values that were given are kept',
  making({ holderIdentity: '', leaseTransitions: 0 }),
);
testCase(
  'nulls are as if not given',
  making({ holderIdentity: null, leaseTransitions: null, renewTime: null }),
);
testCase(
  'times with six digits are kept',
  making({
    acquireTime: '2026-11-20T01:02:03.000004Z',
    renewTime: '2026-11-20T01:02:03.999999Z',
  }),
);
testCase('times are brought to UTC', making({ renewTime: '2026-11-20T03:02:03.123456+02:00' }));
testCase(
  'times with three digits are refused',
  making({ renewTime: '2026-11-20T01:02:03.123Z' }, { anyMessage: true }),
);
testCase(
  'times without digits are refused',
  making({ renewTime: '2026-11-20T01:02:03Z' }, { anyMessage: true }),
);
testCase('a duration of nothing is refused', making({ leaseDurationSeconds: 0 }));
testCase(
  'negative transitions are refused',
  making({ leaseTransitions: -1, leaseDurationSeconds: -2 }),
);
testCase('the wrong types are refused', making({ leaseDurationSeconds: '15' }));
testCase('fractions of seconds are refused', making({ leaseDurationSeconds: 1.5 }));
testCase('an election: take, renew, lose, take over', [
  post(
    LEASES,
    lease('one', { holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0 }),
    {
      as: 'made',
    },
  ),
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
  put(
    ONE,
    lease('one', { holderIdentity: 'b' }, { resourceVersion: '{made.metadata.resourceVersion}' }),
  ),
  put(
    ONE,
    lease(
      'one',
      { holderIdentity: 'b', leaseDurationSeconds: 15, leaseTransitions: 1 },
      { resourceVersion: '{renewed.metadata.resourceVersion}' },
    ),
  ),
  get(ONE),
]);
testCase('a Lease has no status', [
  post(LEASES, lease('one')),
  get(`${ONE}/status`),
  merge(`${ONE}/status`, { status: {} }),
]);

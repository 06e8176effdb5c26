/** Tests the conformance of updates of metadata: which fields of the metadata an update may change. */
import { get, merge, post, put, type Step } from './harness/case.ts';
import {
  ANYTHING,
  LEASES,
  lease,
  WIDGETS,
  widget,
  widgetDefinition,
  widgetFixture,
} from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ONE = `${LEASES}/one`;
const W = `${WIDGETS}/w`;

/** The owner exists, because a real cluster would garbage-collect the dependents of an owner that does not exist. */
const OWNER = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', name: 'owner' };

/** Tries the same change on a built-in object and on a custom object. */
const attempts = (metadata: object, more: { anyMessage?: boolean } = {}): Step[] => [
  post(LEASES, lease('one', {}, { labels: { a: 'b' } })),
  merge(ONE, { metadata }, more),
  post(WIDGETS, widget('w', {}, { labels: { a: 'b' } })),
  merge(W, { metadata }, more),
  get(ONE),
  get(W),
];

const testCase = conformance('metadata', [widgetFixture(widgetDefinition(ANYTHING))]);

testCase('the uid is immutable', attempts({ uid: 'other' }));
testCase('the name is immutable', attempts({ name: 'other' }));
testCase('the namespace is immutable', attempts({ namespace: 'other' }));
testCase(
  'the creation time cannot be set',
  attempts({ creationTimestamp: '2001-01-01T00:00:00Z' }),
);
testCase('the creation time cannot be taken away', attempts({ creationTimestamp: null }));
testCase(
  'the deletion time cannot be set',
  attempts({ deletionTimestamp: '2001-01-01T00:00:00Z' }),
);
testCase('the grace period cannot be set', attempts({ deletionGracePeriodSeconds: 3 }));
testCase('the generation cannot be set', attempts({ generation: 77 }));
testCase('the generateName may be set late', attempts({ generateName: 'x-' }));
testCase('labels are added, changed and removed', attempts({ labels: { a: null, c: 'd' } }));
testCase('labels are checked in updates too', attempts({ labels: { 'not valid': 'x' } }));
testCase('an empty map of labels is no map', attempts({ labels: { a: null } }));
testCase(
  'annotations take any text',
  attempts({ annotations: { 'example.com/json': '{"a": ["b"]}' } }),
);
testCase('finalizers can be set', attempts({ finalizers: ['example.com/one', 'example.com/two'] }));
testCase('owners can be set', [
  post(LEASES, lease('owner'), { as: 'owner' }),
  post(WIDGETS, widget('w')),
  merge(W, {
    metadata: {
      ownerReferences: [
        { ...OWNER, uid: '{owner.metadata.uid}', controller: true, blockOwnerDeletion: false },
      ],
    },
  }),
]);
testCase(
  'two controllers are too many',
  attempts({
    ownerReferences: [
      { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u', controller: true },
      { apiVersion: 'v1', kind: 'Node', name: 'm', uid: 'v', controller: true },
    ],
  }),
);
testCase('unknown metadata is dropped', attempts({ color: 'red' }));
testCase(
  'metadata of the wrong type is refused',
  attempts({ labels: { a: 5 } }, { anyMessage: true }),
);
testCase(
  'metadata cannot be taken away',
  attempts({ labels: null, annotations: null, finalizers: null }),
);
testCase('a PUT may leave out what the server set', [
  post(WIDGETS, widget('w', { a: 1 }), { as: 'made' }),
  put(W, widget('w', { a: 2 }, { resourceVersion: '{made.metadata.resourceVersion}' })),
]);
testCase('a PUT replaces labels and annotations as a whole', [
  post(WIDGETS, widget('w', {}, { labels: { a: 'b' }, annotations: { c: 'd' } }), { as: 'made' }),
  put(
    W,
    widget('w', {}, { resourceVersion: '{made.metadata.resourceVersion}', labels: { e: 'f' } }),
  ),
]);

/** Conformance of what an update may change of an object's metadata. */
import { type Case, get, merge, post, put } from './harness/case.ts';
import { ANYTHING, LEASES, lease, WIDGETS, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ONE = `${LEASES}/one`;
const W = `${WIDGETS}/w`;

/** A real cluster would collect what belongs to an owner that does not exist. */
const OWNER = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', name: 'owner' };

/** The same attempt on a built-in object and on a custom one. */
const attempts = (name: string, metadata: object, more: { anyMessage?: boolean } = {}): Case => ({
  name,
  steps: [
    post(LEASES, lease('one', {}, { labels: { a: 'b' } })),
    merge(ONE, { metadata }, more),
    post(WIDGETS, widget('w', {}, { labels: { a: 'b' } })),
    merge(W, { metadata }, more),
    get(ONE),
    get(W),
  ],
});

const cases: readonly Case[] = [
  attempts('the uid is immutable', { uid: 'other' }),
  attempts('the name is immutable', { name: 'other' }),
  attempts('the namespace is immutable', { namespace: 'other' }),
  attempts('the creation time cannot be set', { creationTimestamp: '2001-01-01T00:00:00Z' }),
  attempts('the creation time cannot be taken away', { creationTimestamp: null }),
  attempts('the deletion time cannot be set', { deletionTimestamp: '2001-01-01T00:00:00Z' }),
  attempts('the grace period cannot be set', { deletionGracePeriodSeconds: 3 }),
  attempts('the generation cannot be set', { generation: 77 }),
  attempts('the generateName may be set late', { generateName: 'x-' }),
  attempts('labels are added, changed and removed', { labels: { a: null, c: 'd' } }),
  attempts('labels are checked in updates too', { labels: { 'not valid': 'x' } }),
  attempts('an empty map of labels is no map', { labels: { a: null } }),
  attempts('annotations take any text', { annotations: { 'example.com/json': '{"a": ["b"]}' } }),
  attempts('finalizers can be set', { finalizers: ['example.com/one', 'example.com/two'] }),
  {
    name: 'owners can be set',
    steps: [
      post(LEASES, lease('owner'), { as: 'owner' }),
      post(WIDGETS, widget('w')),
      merge(W, {
        metadata: {
          ownerReferences: [{ ...OWNER, uid: '{owner.metadata.uid}', controller: true, blockOwnerDeletion: false }],
        },
      }),
    ],
  },
  attempts('two controllers are too many', {
    ownerReferences: [
      { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u', controller: true },
      { apiVersion: 'v1', kind: 'Node', name: 'm', uid: 'v', controller: true },
    ],
  }),
  attempts('unknown metadata is dropped', { color: 'red' }),
  attempts('metadata of the wrong type is refused', { labels: { a: 5 } }, { anyMessage: true }),
  attempts('metadata cannot be taken away', { labels: null, annotations: null, finalizers: null }),
  {
    name: 'a PUT may leave out what the server set',
    steps: [
      post(WIDGETS, widget('w', { a: 1 }), { as: 'made' }),
      put(W, widget('w', { a: 2 }, { resourceVersion: '{made.metadata.resourceVersion}' })),
    ],
  },
  {
    name: 'a PUT replaces labels and annotations as a whole',
    steps: [
      post(WIDGETS, widget('w', {}, { labels: { a: 'b' }, annotations: { c: 'd' } }), { as: 'made' }),
      put(W, widget('w', {}, { resourceVersion: '{made.metadata.resourceVersion}', labels: { e: 'f' } })),
    ],
  },
];

conformance('metadata', cases, [widgetFixture(widgetDefinition(ANYTHING))]);

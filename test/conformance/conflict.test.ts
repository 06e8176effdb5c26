/** Tests the conformance of optimistic concurrency: which writes succeed, and which error the other writes get. */
import { del, get, jsonPatch, merge, post, put } from './harness/case.ts';
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
const OLD = '{made.metadata.resourceVersion}';

const testCase = conformance('conflict', [widgetFixture(widgetDefinition(ANYTHING))]);

testCase('the second of two writers loses', [
  post(LEASES, lease('one'), { as: 'made' }),
  put(ONE, lease('one', { holderIdentity: 'first' }, { resourceVersion: OLD })),
  put(ONE, lease('one', { holderIdentity: 'second' }, { resourceVersion: OLD })),
  get(ONE),
]);
testCase('a stale PUT loses even if it would change nothing', [
  post(LEASES, lease('one', { holderIdentity: 'a' }), { as: 'made' }),
  merge(ONE, { metadata: { labels: { x: 'y' } } }),
  put(ONE, lease('one', { holderIdentity: 'a' }, { resourceVersion: OLD, labels: { x: 'y' } })),
]);
testCase('a custom object and a Lease need a resourceVersion in a PUT', [
  post(LEASES, lease('one')),
  put(ONE, lease('one', { holderIdentity: 'x' })),
  post(WIDGETS, widget('w')),
  put(W, widget('w', { a: 1 })),
]);
testCase('a patch with a stale resourceVersion loses', [
  post(WIDGETS, widget('w'), { as: 'made' }),
  merge(W, { spec: { a: 1 } }),
  merge(W, { metadata: { resourceVersion: OLD }, spec: { a: 2 } }),
  jsonPatch(W, [{ op: 'replace', path: '/metadata/resourceVersion', value: OLD }]),
  get(W),
]);
testCase('a patch with the present resourceVersion wins', [
  post(WIDGETS, widget('w'), { as: 'made' }),
  merge(W, { metadata: { resourceVersion: OLD }, spec: { a: 2 } }),
]);
testCase('a JSON patch can test the revision first', [
  post(WIDGETS, widget('w'), { as: 'made' }),
  jsonPatch(W, [
    { op: 'test', path: '/metadata/resourceVersion', value: OLD },
    { op: 'add', path: '/spec/a', value: 1 },
  ]),
  jsonPatch(W, [
    { op: 'test', path: '/metadata/resourceVersion', value: OLD },
    { op: 'add', path: '/spec/a', value: 2 },
  ]),
]);
testCase('a PUT that names another uid is a conflict', [
  post(LEASES, lease('one'), { as: 'made' }),
  put(ONE, lease('one', {}, { uid: 'of-an-ancestor', resourceVersion: OLD }), { anyMessage: true }),
  put(ONE, lease('one', {}, { uid: '{made.metadata.uid}', resourceVersion: OLD })),
]);
testCase('a patch that names another uid is invalid, one that names the right one is not', [
  post(WIDGETS, widget('w'), { as: 'made' }),
  merge(W, { metadata: { uid: 'of-an-ancestor' }, spec: { a: 1 } }),
  merge(W, { metadata: { uid: '{made.metadata.uid}' }, spec: { a: 1 } }),
]);
testCase('a delete with a precondition on the uid', [
  post(LEASES, lease('one'), { as: 'made' }),
  del(ONE, { preconditions: { uid: 'of-an-ancestor' } }),
  del(ONE, { preconditions: { uid: '{made.metadata.uid}' } }),
]);
testCase('a delete with a precondition on the resourceVersion', [
  post(WIDGETS, widget('w'), { as: 'made' }),
  merge(W, { spec: { a: 1 } }, { as: 'changed' }),
  del(W, { preconditions: { resourceVersion: OLD } }, { anyMessage: true }),
  del(W, { preconditions: { resourceVersion: '{changed.metadata.resourceVersion}' } }),
]);
testCase('a PUT for an object that was deleted', [
  post(WIDGETS, widget('w'), { as: 'made' }),
  del(W),
  put(W, widget('w', {}, { resourceVersion: OLD })),
  merge(W, { spec: { a: 1 } }),
]);
testCase('a PUT with a revision may create a Lease anew', [
  post(LEASES, lease('one'), { as: 'made' }),
  del(ONE),
  put(ONE, lease('one', { holderIdentity: 'again' }, { resourceVersion: OLD })),
]);
testCase('a PUT with the uid of a deleted Lease does not bring it back', [
  post(LEASES, lease('one'), { as: 'made' }),
  del(ONE),
  put(ONE, lease('one', {}, { resourceVersion: OLD, uid: '{made.metadata.uid}' }), {
    anyMessage: true,
  }),
  get(ONE),
]);

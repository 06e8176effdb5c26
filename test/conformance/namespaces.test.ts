/** Tests the conformance of namespaces: what a new namespace contains, and how a namespace ends. */
import { del, events, get, merge, post, put, until, watch } from './harness/case.ts';
import { ANYTHING, lease, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const ALL = '/api/v1/namespaces';
const ONE = `${ALL}/$id`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/$id/leases';
const WIDGETS = '/apis/$group/v1/namespaces/$id/widgets';
const made = post(ALL, { metadata: { name: '$id' } });

const testCase = conformance('namespaces', [widgetFixture(widgetDefinition(ANYTHING))]);

testCase('a namespace is made active, with its name as label', [made, get(ONE)]);
testCase('names of namespaces have no dots', [
  post(ALL, { metadata: { name: 'a.b' } }),
  post(ALL, { metadata: { name: 'x'.repeat(64) } }),
]);
testCase('the label with the name comes back', [
  made,
  merge(ONE, { metadata: { labels: { 'kubernetes.io/metadata.name': null, a: 'b' } } }),
]);
testCase('a PUT keeps status and finalizers', [
  made,
  put(ONE, { metadata: { name: '$id', labels: { a: 'b' } }, spec: { finalizers: [] } }),
]);
testCase('a namespace empties itself and goes', [
  made,
  post(LEASES, lease('one')),
  post(WIDGETS, widget('w')),
  watch('w', `${WIDGETS}?watch=true`),
  del(ONE),
  until(ONE, 'reason', 'NotFound'),
  get(LEASES),
  get(WIDGETS),
  events('w', 2),
]);
testCase('nothing new gets into a namespace that goes, and finalizers hold it up', [
  made,
  post(WIDGETS, widget('w', {}, { finalizers: ['example.com/f'] })),
  del(ONE),
  until(`${WIDGETS}/w`, 'metadata.deletionGracePeriodSeconds', 0),
  post(LEASES, lease('late')),
  merge(`${WIDGETS}/w`, { metadata: { finalizers: null } }),
  until(ONE, 'reason', 'NotFound'),
]);
testCase('a namespace that is not there', [get(ONE), del(ONE), get(LEASES)]);

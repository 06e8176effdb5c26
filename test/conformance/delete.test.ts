/** Tests the conformance of deletion: finalizers, grace periods, preconditions, and the answers. */
import { whyNotSince } from '../testenv/since.ts';
import { del, get, merge, post } from './harness/case.ts';
import {
  ANYTHING,
  LEASES,
  lease,
  PODS,
  WIDGETS,
  widget,
  widgetDefinition,
  widgetFixture,
} from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const W = `${WIDGETS}/w`;
const held = widget('w', { a: 1 }, { finalizers: ['example.com/one', 'example.com/two'] });

const pod = (spec: object = {}): object => ({
  metadata: { name: 'p' },
  spec: {
    schedulerName: 'nobody',
    automountServiceAccountToken: false,
    containers: [{ name: 'main', image: 'example.com/main:1' }],
    ...spec,
  },
});
const P = `${PODS}/p`;

const testCase = conformance('delete', [widgetFixture(widgetDefinition(ANYTHING))]);

testCase('a deletion answers with the uid', [post(WIDGETS, widget('w')), del(W), del(W), get(W)]);
testCase('a finalizer holds the object until it is removed', [
  post(WIDGETS, held),
  del(W),
  get(W),
  del(W),
  merge(W, { metadata: { finalizers: ['example.com/two'] } }),
  merge(W, { metadata: { finalizers: [] } }),
  get(W),
]);
testCase('a finalizer holds a built-in object too', [
  post(LEASES, lease('one', {}, { finalizers: ['example.com/one'] })),
  del(`${LEASES}/one`),
  merge(`${LEASES}/one`, { metadata: { finalizers: null } }),
  get(`${LEASES}/one`),
]);
testCase('no finalizer can be added once the deletion has begun', [
  post(WIDGETS, held),
  del(W),
  merge(W, {
    metadata: { finalizers: ['example.com/one', 'example.com/two', 'example.com/late'] },
  }),
  merge(W, { metadata: { deletionTimestamp: null } }),
  merge(W, { spec: { a: 2 }, metadata: { labels: { still: 'writable' } } }),
]);
testCase('the name is taken as long as the object is held', [
  post(WIDGETS, held),
  del(W),
  post(WIDGETS, widget('w')),
]);
testCase('the last finalizer and another change together', [
  post(WIDGETS, held),
  del(W),
  merge(W, { metadata: { finalizers: null, labels: { seen: 'never' } } }),
  get(W),
]);
testCase('options in body and query', [
  post(WIDGETS, widget('w')),
  del(`${W}?dryRun=All`),
  del(W, { dryRun: ['All'] }),
  del(W, { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' }),
  get(W),
]);
testCase(
  'options that are none',
  [
    post(WIDGETS, widget('w')),
    del(W, '{', { anyMessage: true }),
    del(W, { preconditions: { uid: 5 } }, { anyMessage: true }),
    del(W, { propagationPolicy: 'Perhaps' }, { anyMessage: true }),
  ],
  whyNotSince(35, 'refuses a DELETE with a body of another kind as a bad request'),
);
testCase('a collection is deleted as selected', [
  post(LEASES, lease('one', {}, { labels: { go: 'yes' } })),
  post(LEASES, lease('two', {}, { labels: { go: 'yes' }, finalizers: ['example.com/one'] })),
  post(LEASES, lease('three')),
  del(`${LEASES}?labelSelector=go%3Dyes`),
  get(LEASES),
]);
testCase('a pod that runs nowhere is gone at once', [post(PODS, pod()), del(P), get(P)]);
testCase('a pod on a node gets time to end', [
  post(PODS, pod({ nodeName: '$id-none' })),
  del(P),
  get(P),
  del(P, { gracePeriodSeconds: 5 }),
  del(P, { gracePeriodSeconds: 20 }),
  del(P, { gracePeriodSeconds: 0 }),
  get(P),
]);
testCase('a pod has the grace period that it asks for', [
  post(PODS, pod({ nodeName: '$id-none', terminationGracePeriodSeconds: 7 })),
  del(P),
]);
testCase('a pod that has ended gets no time', [
  post(PODS, pod({ nodeName: '$id-none' })),
  merge(`${P}/status`, { status: { phase: 'Succeeded' } }),
  del(P),
  get(P),
]);
testCase('deleting what never was', [
  del(W),
  del(`${LEASES}/none`),
  del('/api/v1/nodes/$id'),
  del('/api/v1/namespaces/$id-none'),
]);

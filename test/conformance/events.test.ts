/** Tests the conformance of events: how they refer to their objects, how they are counted, and how they are found. */
import { get, merge, post, put, events as received, watch } from './harness/case.ts';
import { conformance } from './harness/suite.ts';

const EVENTS = '/api/v1/namespaces/$ns/events';
const ABOUT = {
  kind: 'Plan',
  namespace: '$ns',
  name: 'autopilot',
  apiVersion: 'example.com/v1',
  uid: 'some-uid',
};

const event = (name: string, more: object = {}): object => ({
  metadata: { name },
  involvedObject: ABOUT,
  reason: 'NodeDone',
  message: 'node n1 runs v2',
  type: 'Normal',
  source: { component: 'refit' },
  firstTimestamp: '2026-11-20T01:02:03Z',
  lastTimestamp: '2026-11-20T01:02:03Z',
  count: 1,
  ...more,
});

const testCase = conformance('events');

testCase('an event of the old style', [post(EVENTS, event('one')), get(`${EVENTS}/one`)]);
testCase('an event of the new style', [
  post(
    EVENTS,
    event('one', {
      eventTime: '2026-11-20T01:02:03.123456Z',
      reportingComponent: 'example.com/refit',
      reportingInstance: 'refit-1',
      action: 'Signal',
    }),
  ),
  post(EVENTS, event('two', { eventTime: '2026-11-20T01:02:03.123456Z' })),
]);
testCase('an event stands in the namespace of what it is about', [
  post(EVENTS, event('one', { involvedObject: { ...ABOUT, namespace: 'elsewhere' } })),
  post(EVENTS, event('two', { involvedObject: { kind: 'Node', name: 'n1' } })),
  post('/api/v1/namespaces/default/events', {
    ...event('$id', { involvedObject: { kind: 'Node', name: 'n1' } }),
    metadata: { name: '$id' },
  }),
]);
testCase('an event that happens again is counted', [
  post(EVENTS, event('one')),
  merge(`${EVENTS}/one`, { count: 2, lastTimestamp: '2026-11-20T01:03:03Z' }),
  put(`${EVENTS}/one`, event('one', { count: 3 })),
]);
testCase('a PUT creates an event', [put(`${EVENTS}/one`, event('one')), get(`${EVENTS}/one`)]);
testCase('an almost empty event', [
  post(EVENTS, { metadata: { name: 'one' }, involvedObject: { namespace: '$ns' } }),
]);
testCase('names of events may be odd', [
  post(EVENTS, event('Node.17A2_B')),
  get(`${EVENTS}/Node.17A2_B`),
]);
testCase('events are found by what they are about', [
  post(EVENTS, event('one')),
  post(
    EVENTS,
    event('two', {
      reason: 'ForeignWork',
      involvedObject: { ...ABOUT, name: 'other' },
      type: 'Warning',
    }),
  ),
  ...[
    'involvedObject.name=other',
    'involvedObject.uid=some-uid',
    'reason!=Other,type=Normal',
    'source=refit',
  ].map((selector) => get(`${EVENTS}?fieldSelector=${encodeURIComponent(selector)}`)),
]);
testCase('events are watched by what they are about', [
  watch('w', `${EVENTS}?watch=1&fieldSelector=involvedObject.name%3Dautopilot`),
  post(EVENTS, event('other', { involvedObject: { ...ABOUT, name: 'other' } })),
  post(EVENTS, event('one')),
  merge(`${EVENTS}/one`, { count: 2 }),
  received('w', 2),
]);

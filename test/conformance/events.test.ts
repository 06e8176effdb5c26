/** Conformance of events: how they name what they are about, and how they are counted and found. */
import { type Case, get, merge, post, put, events as received, watch } from './harness/case.ts';
import { conformance } from './harness/suite.ts';

const EVENTS = '/api/v1/namespaces/$ns/events';
const ABOUT = { kind: 'Plan', namespace: '$ns', name: 'autopilot', apiVersion: 'example.com/v1', uid: 'some-uid' };

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

const cases: readonly Case[] = [
  { name: 'an event of the old style', steps: [post(EVENTS, event('one')), get(`${EVENTS}/one`)] },
  {
    name: 'an event of the new style',
    steps: [
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
    ],
  },
  {
    name: 'an event stands in the namespace of what it is about',
    steps: [
      post(EVENTS, event('one', { involvedObject: { ...ABOUT, namespace: 'elsewhere' } })),
      post(EVENTS, event('two', { involvedObject: { kind: 'Node', name: 'n1' } })),
      post('/api/v1/namespaces/default/events', {
        ...event('$id', { involvedObject: { kind: 'Node', name: 'n1' } }),
        metadata: { name: '$id' },
      }),
    ],
  },
  {
    name: 'an event that happens again is counted',
    steps: [
      post(EVENTS, event('one')),
      merge(`${EVENTS}/one`, { count: 2, lastTimestamp: '2026-11-20T01:03:03Z' }),
      put(`${EVENTS}/one`, event('one', { count: 3 })),
    ],
  },
  { name: 'a PUT creates an event', steps: [put(`${EVENTS}/one`, event('one')), get(`${EVENTS}/one`)] },
  {
    name: 'an almost empty event',
    steps: [post(EVENTS, { metadata: { name: 'one' }, involvedObject: { namespace: '$ns' } })],
  },
  { name: 'names of events may be odd', steps: [post(EVENTS, event('Node.17A2_B')), get(`${EVENTS}/Node.17A2_B`)] },
  {
    name: 'events are found by what they are about',
    steps: [
      post(EVENTS, event('one')),
      post(EVENTS, event('two', { reason: 'Other', involvedObject: { ...ABOUT, name: 'other' }, type: 'Warning' })),
      ...['involvedObject.name=other', 'involvedObject.uid=some-uid', 'reason!=Other,type=Normal', 'source=refit'].map(
        (selector) => get(`${EVENTS}?fieldSelector=${encodeURIComponent(selector)}`),
      ),
    ],
  },
  {
    name: 'events are watched by what they are about',
    steps: [
      watch('w', `${EVENTS}?watch=1&fieldSelector=involvedObject.name%3Dautopilot`),
      post(EVENTS, event('other', { involvedObject: { ...ABOUT, name: 'other' } })),
      post(EVENTS, event('one')),
      merge(`${EVENTS}/one`, { count: 2 }),
      received('w', 2),
    ],
  },
];

conformance('events', cases);

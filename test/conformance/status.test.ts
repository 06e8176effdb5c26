/** Tests the conformance of the status subresource and of generations. */
import { whyNotSince } from '../testenv/since.ts';
import { del, get, jsonPatch, merge, post, put } from './harness/case.ts';
import { ANYTHING, WIDGETS, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const W = `${WIDGETS}/w`;
const OLD = '{made.metadata.resourceVersion}';

const status = {
  ...ANYTHING,
  properties: { typed: { type: 'object', properties: { count: { type: 'integer' } } } },
};

const testCase = conformance('status', [widgetFixture(widgetDefinition(ANYTHING, { status }))]);

testCase('a new object has no status, whatever it was given', [
  post(WIDGETS, widget('w', { a: 1 }, {}, { status: { done: true } })),
  get(W),
  get(`${W}/status`),
]);
testCase('the status changes through its subresource only', [
  post(WIDGETS, widget('w', { a: 1 })),
  merge(W, { status: { done: true } }),
  merge(`${W}/status`, { status: { done: true } }),
  merge(W, { status: { done: false }, spec: { a: 2 } }),
]);
testCase('the subresource changes nothing but the status', [
  post(WIDGETS, widget('w', { a: 1 }, { labels: { a: 'b' } })),
  merge(`${W}/status`, {
    metadata: {
      labels: { a: 'c', d: 'e' },
      annotations: { x: 'y' },
      finalizers: ['example.com/f'],
    },
    spec: { a: 9 },
    status: { done: true },
  }),
  get(W),
]);
testCase('a PUT on the status', [
  post(WIDGETS, widget('w', { a: 1 }), { as: 'made' }),
  put(`${W}/status`, widget('w', { a: 9 }, { resourceVersion: OLD }, { status: { done: true } })),
  put(`${W}/status`, widget('w', {}, { resourceVersion: OLD }, { status: { done: false } })),
  put(`${W}/status`, widget('w', {}, {}, { status: { done: false } })),
]);
testCase('a PUT on the object keeps the status', [
  post(WIDGETS, widget('w', { a: 1 })),
  merge(`${W}/status`, { status: { done: true } }, { as: 'made' }),
  put(W, widget('w', { a: 2 }, { resourceVersion: OLD })),
]);
testCase('a PUT without a status takes it away', [
  post(WIDGETS, widget('w')),
  merge(`${W}/status`, { status: { done: true } }, { as: 'made' }),
  put(`${W}/status`, widget('w', {}, { resourceVersion: OLD })),
]);
testCase('the generation counts changes of the spec, not of status and metadata', [
  post(WIDGETS, widget('w', { a: 1 })),
  merge(W, { spec: { a: 2 } }),
  merge(W, { spec: { a: 2 } }),
  merge(W, { metadata: { labels: { x: 'y' } } }),
  merge(`${W}/status`, { status: { done: true } }),
  merge(W, { spec: { b: 3 }, metadata: { labels: { x: 'z' } } }),
]);
testCase('a JSON patch on the status', [
  post(WIDGETS, widget('w')),
  jsonPatch(`${W}/status`, [{ op: 'add', path: '/status', value: { steps: ['one'] } }]),
  jsonPatch(`${W}/status`, [{ op: 'add', path: '/status/steps/-', value: 'two' }]),
  jsonPatch(`${W}/status`, [{ op: 'add', path: '/spec/sneaked', value: true }]),
]);
testCase(
  'the status is pruned and validated too',
  [
    post(WIDGETS, widget('w')),
    merge(`${W}/status`, { status: { typed: { count: 'many' } } }, { anyMessage: true }),
    merge(`${W}/status`, { status: { typed: { count: 1, color: 'red' } } }),
  ],
  whyNotSince(31, 'names the whole path of a member of the status'),
);
testCase('the status of what does not exist', [
  get(`${W}/status`),
  merge(`${W}/status`, { status: {} }),
  get(`${W}/nonsense`),
]);
testCase('a status is not created or deleted by itself', [
  post(WIDGETS, widget('w')),
  post(`${W}/status`, widget('w'), { anyMessage: true }),
  del(`${W}/status`, undefined, { anyMessage: true }),
]);

/**
 * Tests the conformance of server-side apply: who owns which field, who may take it, and which fields are removed when
 * an owner gives them up.
 */
import { apply, get, merge, post, type RequestStep } from './harness/case.ts';
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

const W = `${WIDGETS}/w`;
const by = (
  manager: string,
  spec: object,
  metadata: object = {},
  more: Parameters<typeof apply>[2] = {},
): RequestStep => apply(`${W}?fieldManager=${manager}`, widget('w', spec, metadata), more);
const forced = (manager: string, spec: object): RequestStep =>
  apply(`${W}?fieldManager=${manager}&force=true`, widget('w', spec));

const spec = { ...ANYTHING, properties: { defaulted: { type: 'string', default: 'standard' } } };

const testCase = conformance('apply', [
  widgetFixture(widgetDefinition(spec, { status: ANYTHING })),
]);

testCase('apply creates, applies again, and changes', [
  by('a', { x: 1 }),
  by('a', { x: 1 }),
  by('a', { x: 2 }),
  get(W),
]);
testCase('what is applied no more goes', [
  by('a', { x: 1, y: { z: 2, t: 3 } }),
  by('a', { x: 1, y: { t: 3 } }),
  by('a', {}),
]);
testCase('two managers each own their fields', [
  by('a', { x: 1 }),
  by('b', { y: 2 }),
  by('a', {}),
  by('b', { y: 3 }),
]);
testCase('a field of another manager is a conflict', [
  by('a', { x: 1 }),
  by('b', { x: 2 }),
  get(W),
]);
testCase('several conflicts are all told', [by('a', { x: 1, y: 1 }), by('b', { x: 2, y: 2 })]);
testCase('force takes the field over', [
  by('a', { x: 1, y: 1 }),
  forced('b', { x: 2 }),
  by('a', { x: 1, y: 1 }),
  by('a', { y: 1 }),
  by('b', {}),
]);
testCase('an equal value is owned by both, and stays as long as one wants it', [
  by('a', { x: 1 }),
  by('b', { x: 1 }),
  by('a', {}),
  by('b', {}),
]);
testCase('what was written by other means conflicts too', [
  post(WIDGETS, widget('w', { x: 1 })),
  by('a', { x: 2 }, {}, { anyMessage: true }),
  by('a', { x: 1, y: 1 }),
  merge(W, { spec: { y: 2 } }),
  by('a', { x: 1, y: 1 }, {}, { anyMessage: true }),
  forced('a', { y: 1 }),
]);
testCase('labels and annotations are owned one by one', [
  by('a', {}, { labels: { one: '1' }, annotations: { 'example.com/a': 'a' } }),
  by('b', {}, { labels: { two: '2' } }),
  by('a', {}, { labels: { one: '1' } }),
  by('b', {}, {}),
]);
testCase('lists are owned as a whole', [
  by('a', { list: [1, 2] }),
  by('b', { list: [1, 2, 3] }),
  by('a', { list: [3] }),
]);
testCase("defaults are nobody's", [by('a', { x: 1 }), by('b', { defaulted: 'mine' }), by('b', {})]);
testCase('a status is applied through its subresource', [
  by('a', { x: 1 }),
  apply(`${W}/status?fieldManager=s`, widget('w', {}, {}, { status: { done: true } })),
  apply(`${W}/status?fieldManager=s`, widget('w', {}, {}, { status: { steps: 2 } })),
  by('a', { x: 2 }),
]);
testCase('YAML, and a resourceVersion as precondition', [
  apply(
    `${W}?fieldManager=a`,
    'apiVersion: $group/v1\nkind: Widget\nmetadata: {name: w}\nspec:\n  x: 1\n',
    {
      as: 'made',
    },
  ),
  by('a', { x: 2 }, { resourceVersion: '{made.metadata.resourceVersion}' }),
  by('a', { x: 3 }, { resourceVersion: '{made.metadata.resourceVersion}' }),
]);
testCase('a built-in object', [
  apply(`${LEASES}/one?fieldManager=a`, lease('one', { holderIdentity: 'a' })),
  apply(
    `${LEASES}/one?fieldManager=b`,
    lease('one', { holderIdentity: 'b', leaseDurationSeconds: 3 }),
  ),
  apply(`${LEASES}/one?fieldManager=b`, lease('one', { leaseDurationSeconds: 3 })),
  apply(`${LEASES}/one?fieldManager=a`, lease('one')),
]);
testCase('a dry run takes nothing over', [
  apply(`${W}?fieldManager=a&dryRun=All`, widget('w', { x: 1 })),
  get(W),
  by('a', { x: 1 }),
  apply(`${W}?fieldManager=b&force=true&dryRun=All`, widget('w', { x: 2 })),
  get(W),
]);
testCase('requests that are refused', [
  apply(W, widget('w', {})),
  apply(`${W}?fieldManager=a`, widget('other', {})),
  apply(`${W}?fieldManager=a`, '{', { anyMessage: true }),
  apply(`${W}?fieldManager=a`, { metadata: { name: 'w' } }, { anyMessage: true }),
  apply(`${W}/status?fieldManager=a`, widget('w', {}, {}, { status: {} })),
]);

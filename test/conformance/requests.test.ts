/**
 * Tests the conformance of requests in general: media types, bodies that cannot be parsed, limits and unusual options.
 */
import { get, merge, post, put } from './harness/case.ts';
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

const testCase = conformance('requests', [widgetFixture(widgetDefinition(ANYTHING))]);

testCase('YAML is read where it is called YAML', [
  post(LEASES, 'metadata: {name: one}\nspec: {holderIdentity: me}\n', {
    contentType: 'application/yaml',
  }),
  post(
    WIDGETS,
    'apiVersion: $group/v1\nkind: Widget\nmetadata:\n  name: w\nspec:\n  a: [1, two]\n',
    {
      contentType: 'application/yaml',
    },
  ),
]);
testCase('media types that nobody reads', [
  post(LEASES, lease('one'), { contentType: 'text/plain' }),
  post(LEASES, lease('one'), { contentType: 'application/json; charset=utf-8' }),
  put(`${LEASES}/two`, lease('two'), { contentType: 'application/nonsense' }),
]);
testCase('media types that nobody writes', [
  post(LEASES, lease('one')),
  get(`${LEASES}/one`, { accept: 'application/nonsense' }),
  get(LEASES, { accept: 'text/html' }),
  get(`${LEASES}/one`, { accept: '*/*' }),
  get(`${LEASES}/one`, { accept: 'application/nonsense, application/json' }),
  get(`${LEASES}/one`, { accept: 'application/*' }),
]);
testCase(
  'bodies that are no object',
  ['', '{', '[]', '5', '"text"', 'null'].map((body) => post(LEASES, body, { anyMessage: true })),
);
testCase('a body that kube-apiserver does not read to its end', [
  post(LEASES, lease('one', { holderIdentity: 'x'.repeat(3_300_000) }), { anyMessage: true }),
]);
testCase('an object that is too large to be stored', [
  post(LEASES, lease('one', { holderIdentity: 'x'.repeat(1_700_000) })),
  post(LEASES, lease('two', { holderIdentity: 'x' })),
  merge(`${LEASES}/two`, { spec: { holderIdentity: 'y'.repeat(1_700_000) } }),
]);
testCase('texts in any script come back as they were', [
  post(WIDGETS, widget('w', { text: 'Ünïcödé 日本 🚢 \u2028 "quoted" \\ <&>' })),
  get(`${WIDGETS}/w`),
]);
testCase('escaped characters in paths', [post(LEASES, lease('one')), get(`${LEASES}/%6Fne`)]);

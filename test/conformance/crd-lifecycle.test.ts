/** Tests the conformance of CustomResourceDefinitions: how they are accepted, served, changed and removed. */
import { del, end, get, merge, post, until, watch } from './harness/case.ts';
import { ANYTHING, DEFINITIONS } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

/** Returns the definition of a kind in a group that only this case uses. */
const definition = (spec: object = {}, version: object = {}): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gadgets.$id.$group' },
  spec: {
    group: '$id.$group',
    names: { plural: 'gadgets', kind: 'Gadget' },
    scope: 'Cluster',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: ANYTHING } } },
        ...version,
      },
    ],
    ...spec,
  },
});

const ONE = `${DEFINITIONS}/gadgets.$id.$group`;
const GADGETS = '/apis/$id.$group/v1/gadgets';
const gadget = {
  apiVersion: '$id.$group/v1',
  kind: 'Gadget',
  metadata: { name: 'g' },
  spec: { a: 1 },
};
const established = until(ONE, 'status.conditions.1.status', 'True');
const served = until(GADGETS, 'kind', 'GadgetList');

const testCase = conformance('crd-lifecycle');

testCase('a definition is accepted, established and served', [
  post(DEFINITIONS, definition()),
  established,
  get(ONE),
  served,
  post(GADGETS, gadget),
  get(GADGETS),
]);
testCase('nothing is served before the definition', [get(GADGETS), get('/apis/$id.$group')]);
testCase('a definition goes with its objects, and ends their watches', [
  post(DEFINITIONS, definition()),
  served,
  post(GADGETS, gadget),
  watch('w', `${GADGETS}?watch=true&timeoutSeconds=20`),
  del(ONE),
  end('w'),
  until(ONE, 'reason', 'NotFound'),
]);
testCase('a definition that comes again starts empty', [
  post(DEFINITIONS, definition()),
  served,
  post(GADGETS, gadget),
  del(ONE),
  until(ONE, 'reason', 'NotFound'),
  post(DEFINITIONS, definition()),
  established,
  served,
  get(GADGETS),
]);
testCase('the name is made of plural and group', [
  post(DEFINITIONS, { ...definition(), metadata: { name: 'things.$id.$group' } }),
]);
testCase('a scope that is none', [post(DEFINITIONS, definition({ scope: 'Everywhere' }))]);
testCase('a version without a schema', [post(DEFINITIONS, definition({}, { schema: undefined }))]);
testCase('one version has to be stored', [
  post(DEFINITIONS, definition({}, { storage: false }), { anyMessage: true }),
]);
testCase('a new schema holds for what is written from then on', [
  post(DEFINITIONS, definition()),
  served,
  post(GADGETS, gadget),
  merge(
    ONE,
    definition(
      {},
      {
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                required: ['b'],
                properties: { a: { type: 'integer' }, b: { type: 'integer', default: 2 } },
              },
            },
          },
        },
      },
    ),
  ),
  until('/apis/$id.$group/v1/gadgets/g', 'spec.b', 2),
  merge(`${GADGETS}/g`, { spec: { a: 'text' } }),
  merge(`${GADGETS}/g`, { spec: { a: 5, c: 6 } }),
]);
testCase('labels of a definition change its revision, not its generation', [
  post(DEFINITIONS, definition()),
  established,
  merge(ONE, { metadata: { labels: { a: 'b' } } }),
]);

/** Conformance of definitions themselves: how they are accepted, served, changed and taken away. */
import { type Case, del, end, get, merge, post, until, watch } from './harness/case.ts';
import { ANYTHING, DEFINITIONS } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

/** A kind in a group of the case's own. */
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
const gadget = { apiVersion: '$id.$group/v1', kind: 'Gadget', metadata: { name: 'g' }, spec: { a: 1 } };
const established = until(ONE, 'status.conditions.1.status', 'True');
const served = until(GADGETS, 'kind', 'GadgetList');

const cases: readonly Case[] = [
  {
    name: 'a definition is accepted, established and served',
    steps: [post(DEFINITIONS, definition()), established, get(ONE), served, post(GADGETS, gadget), get(GADGETS)],
  },
  { name: 'before it is defined nothing is served', steps: [get(GADGETS), get('/apis/$id.$group')] },
  {
    name: 'a definition goes with its objects, and ends their watches',
    steps: [
      post(DEFINITIONS, definition()),
      served,
      post(GADGETS, gadget),
      watch('w', `${GADGETS}?watch=true&timeoutSeconds=20`),
      del(ONE),
      end('w'),
      until(ONE, 'reason', 'NotFound'),
    ],
  },
  {
    name: 'a definition that comes again starts empty',
    steps: [
      post(DEFINITIONS, definition()),
      served,
      post(GADGETS, gadget),
      del(ONE),
      until(ONE, 'reason', 'NotFound'),
      post(DEFINITIONS, definition()),
      established,
      served,
      get(GADGETS),
    ],
  },
  {
    name: 'the name is made of plural and group',
    steps: [post(DEFINITIONS, { ...definition(), metadata: { name: 'things.$id.$group' } })],
  },
  {
    name: 'a scope that is none',
    steps: [post(DEFINITIONS, definition({ scope: 'Everywhere' }))],
  },
  {
    name: 'a version without a schema',
    steps: [post(DEFINITIONS, definition({}, { schema: undefined }))],
  },
  {
    name: 'one version has to be stored',
    steps: [post(DEFINITIONS, definition({}, { storage: false }), { anyMessage: true })],
  },
  {
    name: 'a new schema holds for what is written from then on',
    steps: [
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
    ],
  },
  {
    name: 'labels of a definition change its revision, not its generation',
    steps: [post(DEFINITIONS, definition()), established, merge(ONE, { metadata: { labels: { a: 'b' } } })],
  },
];

conformance('crd-lifecycle', cases);

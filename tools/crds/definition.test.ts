/** Tests that the description of a kind becomes the definition that the API server expects around its schema. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type DefinedKind, definitionOf } from './definition.ts';

const boat: DefinedKind = {
  resource: {
    group: 'sea.example.com',
    version: 'v1',
    kind: 'RowBoat',
    plural: 'rowboats',
    namespaced: true,
  },
  schema: z
    .object({ spec: z.object({ oars: z.int() }).describe('The boat.') })
    .describe('A small boat.'),
  columns: [],
};

test('names, scope and root come from the description', () => {
  const { metadata, spec } = definitionOf(boat);
  expect(metadata.name).toBe('rowboats.sea.example.com');
  expect(spec).toMatchObject({
    group: 'sea.example.com',
    names: { kind: 'RowBoat', listKind: 'RowBoatList', plural: 'rowboats', singular: 'rowboat' },
    scope: 'Namespaced',
  });
  expect(spec.versions).toHaveLength(1);
  expect(spec.versions[0]).toEqual({
    name: 'v1',
    served: true,
    storage: true,
    schema: {
      openAPIV3Schema: {
        type: 'object',
        description: 'A small boat.',
        properties: {
          apiVersion: { type: 'string' },
          kind: { type: 'string' },
          metadata: { type: 'object' },
          spec: {
            type: 'object',
            description: 'The boat.',
            properties: { oars: { type: 'integer' } },
            required: ['oars'],
          },
        },
        required: ['spec'],
      },
    },
  });
});

test('a status is a subresource, and columns are there when they are asked for', () => {
  const columns = [{ name: 'Oars', type: 'integer', jsonPath: '.spec.oars' }] as const;
  const { spec } = definitionOf({
    ...boat,
    resource: { ...boat.resource, namespaced: false },
    schema: boat.schema.extend({ status: z.object({}) }),
    columns,
  });
  expect(spec.scope).toBe('Cluster');
  expect(spec.versions[0]).toMatchObject({
    subresources: { status: {} },
    additionalPrinterColumns: columns,
  });
});

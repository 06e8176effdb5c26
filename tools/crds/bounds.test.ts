/** Tests that every text in the spec of our own kinds has a maximum length, so that no text makes a reconcile slow. */
import { expect, test } from 'vitest';
import { definitionOf } from './definition.ts';
import { CUSTOM_KINDS } from './registry.ts';

interface Shape {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly maxLength?: number;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly additionalProperties?: Shape;
}

/** Returns the paths of all texts without a maximum length. */
function endless(shape: Shape, path: string): string[] {
  const isBounded =
    shape.enum !== undefined || shape.format === 'date-time' || shape.maxLength !== undefined;
  return [
    ...(shape.type === 'string' && !isBounded ? [path] : []),
    ...Object.entries(shape.properties ?? {}).flatMap(([name, inner]) =>
      endless(inner, `${path}.${name}`),
    ),
    ...(shape.items ? endless(shape.items, `${path}[]`) : []),
    ...(shape.additionalProperties ? endless(shape.additionalProperties, `${path}{}`) : []),
  ];
}

const specs = CUSTOM_KINDS.map(definitionOf)
  .filter(({ spec }) => spec.group === 'upgrade.refit.dev')
  .flatMap(({ spec }) =>
    spec.versions.flatMap(({ schema }) => {
      const { spec: shape } = (schema.openAPIV3Schema as Shape).properties ?? {};
      return shape ? [[spec.names.kind, shape] as const] : [];
    }),
  );

test.each(specs)('every text in the spec of %s has a longest length', (_kind, shape) => {
  expect(endless(shape, 'spec')).toEqual([]);
});

test('a text of any length is found, also in lists and maps', () => {
  const text = { type: 'string' };
  const properties = {
    list: { type: 'array', items: text },
    map: { type: 'object', additionalProperties: text },
    word: { ...text, maxLength: 64 },
    choice: { ...text, enum: ['A'] },
  };
  expect(endless({ type: 'object', properties }, 'spec')).toEqual(['spec.list[]', 'spec.map{}']);
});

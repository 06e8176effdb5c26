/** Writes the reference page of the custom kinds. For each kind, the page has one table of the fields in its schema. */
import type { CustomKind } from '../../src/api/crd.ts';
import { structural } from '../crds/definition.ts';

/** The part of a schema's node that the page shows. */
interface Field {
  type?: string;
  format?: string;
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  required?: readonly string[];
  properties?: Readonly<Record<string, Field>>;
  additionalProperties?: Field;
  items?: Field;
}

interface Row {
  path: string;
  field: Field;
  required: boolean;
}

export function crdReference(kinds: readonly CustomKind[]): string {
  const opening = [
    '# Custom kinds',
    '',
    'Generated from `src/api` by `npm run generate`: edit it there. Every object also has `apiVersion`, `kind` and `metadata`.',
    'In a path, `[]` stands for each item of a list and `<key>` for each key of a map.',
  ];
  return `${[...opening, ...kinds.flatMap(section)].join('\n')}\n`;
}

function section({ resource, schema }: CustomKind): string[] {
  const root = structural(schema) as Field;
  const scope = resource.namespaced ? 'namespaced' : 'cluster-scoped';
  const status = 'status' in schema.shape ? ', with a status subresource' : '';
  return [
    '',
    `## ${resource.kind}`,
    '',
    `\`${resource.group}/${resource.version}\`, ${scope}${status}. ${root.description ?? ''}`,
    '',
    '| field | type | required or default | meaning |',
    '|---|---|---|---|',
    ...rowsBelow(root, '').map(line),
  ];
}

function rowsBelow(node: Field, path: string): Row[] {
  const members = Object.entries(node.properties ?? {}).flatMap(([name, field]) => {
    const inner = path === '' ? name : `${path}.${name}`;
    return [
      { path: inner, field, required: node.required?.includes(name) ?? false },
      ...rowsBelow(field, inner),
    ];
  });
  const values =
    node.additionalProperties === undefined
      ? []
      : rowsBelow(node.additionalProperties, `${path}.<key>`);
  const items = node.items === undefined ? [] : rowsBelow(node.items, `${path}[]`);
  return [...members, ...values, ...items];
}

function line({ path, field, required }: Row): string {
  const presence =
    field.default === undefined ? '' : `default \`${JSON.stringify(field.default)}\``;
  const choices =
    field.enum === undefined
      ? ''
      : ` One of ${field.enum.map((value) => `\`${String(value)}\``).join(', ')}.`;
  return `| \`${path}\` | ${typeOf(field)} | ${required ? 'required' : presence} | ${field.description ?? ''}${choices} |`;
}

function typeOf(field: Field): string {
  if (field.items !== undefined) return `list of ${typeOf(field.items)}`;
  if (field.additionalProperties !== undefined)
    return `map of ${typeOf(field.additionalProperties)}`;
  return field.format ?? field.type ?? 'any';
}

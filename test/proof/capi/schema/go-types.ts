/**
 * Reads the Go types of a package as schemas: the fields, which fields are required, and the values of named strings.
 * Comments are left out.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export type Schema = Readonly<Record<string, unknown>>;

export type Definitions = Readonly<Record<string, Schema>>;

interface ObjectSchema extends Schema {
  readonly properties: Definitions;
  readonly required: readonly string[];
}

interface Field {
  /** Empty where the type is embedded. */
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
}

/** The types that a package defines, by their names. */
export interface GoTypes {
  readonly structs: ReadonlyMap<string, readonly Field[]>;
  /** The values of named strings. */
  readonly enums: ReadonlyMap<string, readonly string[]>;
}

const STRUCT = /^type (\w+) struct \{\n([\s\S]*?)^\}/gm;
const FIELD = /((?:^\t\/\/.*\n)*)^\t(?:\w+ +)?([\w.*[\]]+) +`json:"(\w*)[^"]*"`/gm;
const CONSTANT = /^\t\w+ +(\w+) += +"(\w+)"/gm;
const ENUM = /\+kubebuilder:validation:Enum=([\w;]+)\ntype (\w+) string/g;

export async function readGoTypes(folder: string): Promise<GoTypes> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('_types.go'));
  const text = (
    await Promise.all(files.map(async (file) => await readFile(join(folder, file), 'utf8')))
  ).join('\n');
  const structs = [...text.matchAll(STRUCT)].map(
    ([, name = '', body = '']) => [name, fieldsIn(body)] as const,
  );
  const enums = new Map<string, string[]>();
  for (const [, type = '', value = ''] of text.matchAll(CONSTANT))
    enums.set(type, [...(enums.get(type) ?? []), value]);
  for (const [, values = '', type = ''] of text.matchAll(ENUM)) enums.set(type, values.split(';'));
  return { structs: new Map(structs), enums };
}

function fieldsIn(body: string): Field[] {
  return [...body.matchAll(FIELD)].map(([, comment = '', type = '', name = '']) => ({
    name,
    type,
    required: comment.includes('+required'),
  }));
}

const BASIC: Readonly<Record<string, Schema>> = {
  string: { type: 'string' },
  int32: { type: 'integer', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 },
  // Base64.
  '[]byte': {
    type: 'string',
    pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
  },
  'map[string]string': { type: 'object', additionalProperties: { type: 'string' } },
};

/**
 * Returns the schemas of the types `roots` and of all types that they refer to, by their names. `foreign` has the types
 * of other packages. Throws if a type is unknown.
 */
export function definitionsOf(
  types: GoTypes,
  roots: readonly string[],
  foreign: Definitions,
): Definitions {
  const found: Record<string, Schema> = {};
  const define = (name: string): void => {
    if (found[name] !== undefined) return;
    const fields = types.structs.get(name);
    if (fields === undefined) throw new Error(`there is no type ${name}`);
    found[name] = objectOf(fields);
  };
  const objectOf = (fields: readonly Field[]): ObjectSchema => {
    const parts = fields.map(({ name, type, required }) =>
      name === ''
        ? embedded(type)
        : { properties: { [name]: schemaOf(type) }, required: required ? [name] : [] },
    );
    const properties = Object.assign({}, ...parts.map((part) => part.properties)) as Definitions;
    const required = parts.flatMap((part) => part.required);
    return { type: 'object', required, properties, additionalProperties: false };
  };
  const embedded = (type: string): Pick<ObjectSchema, 'properties' | 'required'> =>
    (foreign[type] as ObjectSchema | undefined) ?? objectOf(types.structs.get(type) ?? []);
  const schemaOf = (written: string): Schema => {
    const type = written.replace(/^\*/, '');
    const known = BASIC[type] ?? foreign[type];
    if (known !== undefined) return known;
    if (type.startsWith('[]')) return { type: 'array', items: schemaOf(type.slice(2)) };
    const values = types.enums.get(type);
    if (values !== undefined) return { type: 'string', enum: values.toSorted() };
    define(type);
    return referenceTo(type);
  };
  roots.forEach(define);
  return found;
}

export function referenceTo(name: string): Schema {
  return { $ref: `#/$defs/${name}` };
}

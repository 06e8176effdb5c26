/** Structural schemas of custom resources: pruning, defaults, and what this server cannot check. */
import { isRecord } from '../../../src/util/json.ts';

/** The members of OpenAPI v3 that a CustomResourceDefinition may use and that this server honours. */
export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly nullable?: boolean;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly uniqueItems?: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
}

/**
 * Rules that nothing here checks. A schema with such a rule is refused, because to ignore the rule would be worse. Only
 * CEL rules are ignored, because this server has no interpreter for them: test/testenv/crds.test.ts checks the CEL
 * rules of our kinds.
 */
const UNCHECKED = ['x-kubernetes-embedded-resource', '$ref'];
const UNCHECKED_FORMATS = [
  'email',
  'hostname',
  'cidr',
  'mac',
  'uuid3',
  'uuid4',
  'uuid5',
  'isbn',
  'creditcard',
  'ssn',
];

/**
 * Returns the path of the first rule in the schema that this server cannot check; undefined if it can check all rules.
 */
export function uncheckedRule(schema: unknown, path: string): string | undefined {
  if (Array.isArray(schema))
    return schema.map((item, index) => uncheckedRule(item, `${path}[${index}]`)).find(Boolean);
  if (!isRecord(schema)) return undefined;
  const own = UNCHECKED.find((rule) => rule in schema && !path.endsWith('.properties'));
  if (own !== undefined) return `${path}.${own}`;
  const { format } = schema;
  if (typeof format === 'string' && UNCHECKED_FORMATS.includes(format))
    return `${path}.format ${format}`;
  for (const [member, inner] of Object.entries(schema)) {
    if (member === 'default' || member === 'enum' || member === 'example') continue;
    const found = uncheckedRule(inner, `${path}.${member}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

const mapOf = ({ additionalProperties: extra }: Schema): Schema | undefined =>
  typeof extra === 'object' ? extra : undefined;

/** Removes, in place, the members that the schema does not name. Adds their paths to `unknown`. */
export function prune(
  value: unknown,
  schema: Schema | undefined,
  path: string,
  unknown: string[],
): void {
  const preserve = schema?.['x-kubernetes-preserve-unknown-fields'] === true;
  if (Array.isArray(value)) {
    if (preserve && schema?.items === undefined) return;
    value.forEach((item, index) => prune(item, schema?.items, `${path}[${index}]`, unknown));
  } else if (isRecord(value)) {
    for (const [member, inner] of Object.entries(value)) {
      const at = path === '' ? member : `${path}.${member}`;
      const known = schema?.properties?.[member] ?? (schema && mapOf(schema));
      if (known) prune(inner, known, at, unknown);
      else if (!preserve && schema?.additionalProperties !== true) {
        unknown.push(at);
        delete value[member];
      }
    }
  }
}

/** Removes, in place, each null that the schema does not allow and for which it has no default. */
export function dropNulls(value: unknown, schema: Schema | undefined): void {
  if (schema === undefined) return;
  if (Array.isArray(value)) for (const item of value) dropNulls(item, schema.items);
  else if (isRecord(value)) {
    for (const [member, inner] of Object.entries(value)) {
      const known = schema.properties?.[member] ?? mapOf(schema);
      if (inner === null && known && known.nullable !== true && known.default === undefined)
        delete value[member];
      else dropNulls(inner, known);
    }
  }
}

/** Sets defaults in place, if a member is missing, or if it is null although the schema does not allow null. */
export function setDefaults(value: unknown, schema: Schema | undefined): void {
  if (schema === undefined) return;
  if (Array.isArray(value)) {
    for (const item of value) setDefaults(item, schema.items);
    return;
  }
  if (!isRecord(value)) return;
  for (const [member, known] of Object.entries(schema.properties ?? {})) {
    const missing = !(member in value) || (value[member] === null && known.nullable !== true);
    if (known.default !== undefined && missing) value[member] = structuredClone(known.default);
  }
  for (const [member, inner] of Object.entries(value)) {
    setDefaults(inner, schema.properties?.[member] ?? mapOf(schema));
  }
}

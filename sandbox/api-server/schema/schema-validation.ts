/** Validates against structural schemas, with the findings of kube-apiserver. */
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../../src/util/json.ts';
import { type Cause, cause } from '../failure.ts';
import type { Schema } from './schema.ts';

/**
 * Returns every fault of `value` under the schema. A value that equals the value at the same path in `old` was accepted
 * before and is not checked again (ratcheting). So a schema that became stricter does not block other changes.
 */
export function validateValue(
  value: unknown,
  schema: Schema,
  path: string,
  old?: unknown,
): Cause[] {
  if (old !== undefined && isDeepStrictEqual(value, old)) return [];
  const causes = [...typeFaults(value, schema, path), ...enumFaults(value, schema, path)];
  if (value === null) return causes;
  if (typeof value === 'string') causes.push(...stringFaults(value, schema, path));
  if (typeof value === 'number') causes.push(...numberFaults(value, schema, path));
  if (Array.isArray(value)) causes.push(...arrayFaults(value, schema, path));
  causes.push(...junctorFaults(value, schema, path));
  if (isRecord(value)) causes.push(...objectFaults(value, schema, path, old));
  return causes;
}

const inBody = (path: string, rule: string): string =>
  `${path === '' ? '.' : path} in body ${rule}`;

const broken = (path: string, value: unknown, rule: string): Cause =>
  cause.invalid(path, value, inBody(path, rule));

/** Makes a finding about a number format. It has no field, because the validator of the real server loses the field. */
const formatless = (path: string, type: string): Cause =>
  cause.invalid('<nil>', '', `Checked value must be of type ${type} in ${path}`);

const wrongType = (path: string, type: string, found: string): Cause =>
  cause.wrongType(path, found, inBody(path, `must be of type ${type}: ${JSON.stringify(found)}`));

function jsonType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

/** The names of JSON numbers in Go. */
const GO_NUMBERS = new Map([
  ['integer', 'int64'],
  ['number', 'float64'],
]);

function typesOf(schema: Schema): readonly string[] {
  if (schema['x-kubernetes-int-or-string'] === true) return ['integer', 'string'];
  return schema.type ? [schema.type] : [];
}

function typeFaults(value: unknown, schema: Schema, path: string): Cause[] {
  const types = typesOf(schema);
  if (types.length === 0) return [];
  const found = jsonType(value);
  if (found === 'null')
    return schema.nullable === true ? [] : [wrongType(path, types.join(), found)];
  const fits = types.includes(found) || (found === 'integer' && types.includes('number'));
  const { format = '' } = schema;
  if (format !== '' && typeof value === 'string' && types.includes('string')) return [];
  if (fits) return [];
  const named = format !== '' && found !== 'string' && found !== 'array';
  if (!named) return [wrongType(path, types.join(), found)];
  return [wrongType(path, format, GO_NUMBERS.get(found) ?? '')];
}

function enumFaults(value: unknown, schema: Schema, path: string): Cause[] {
  if (schema.enum === undefined || schema.enum.some((allowed) => isDeepStrictEqual(allowed, value)))
    return [];
  if (value === null && schema.nullable === true && schema.enum.includes(null)) return [];
  const allowed = schema.enum.map((item) =>
    typeof item === 'string' ? item : JSON.stringify(item),
  );
  return [cause.notSupported(path, value, allowed)];
}

function stringFaults(value: string, schema: Schema, path: string): Cause[] {
  const { minLength, maxLength, pattern, format = '' } = schema;
  const causes: Cause[] = [];
  const length = Array.from(value).length;
  if (maxLength !== undefined && length > maxLength) causes.push(cause.tooLong(path, maxLength));
  if (minLength !== undefined && length < minLength) {
    causes.push(broken(path, value, `should be at least ${minLength} chars long`));
  }
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(value)) {
    causes.push(broken(path, value, `should match '${pattern}'`));
  }
  if (FORMATS[format]?.(value) === false) causes.push(wrongType(path, format, value));
  return causes;
}

const TIME = /^\d{4}-\d\d-\d\dt([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(z|[+-]\d\d:\d\d)$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const OCTET = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)';

function isDate(text: string): boolean {
  const ms = Date.parse(`${text}T00:00:00Z`);
  return text.length === 10 && !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/**
 * The formats that are checked. A definition with another format that Kubernetes checks is refused when it is created.
 */
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': (text) => TIME.test(text.toLowerCase()) && isDate(text.slice(0, 10)),
  date: isDate,
  duration: (text) =>
    /^[+-]?(\d+(\.\d*)?\s*(ns|us|µs|ms|s|m|h|d|w)\s*)+$/.test(text) || text === '0',
  byte: (text) => text !== '' && BASE64.test(text),
  uuid: (text) => /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(text),
  ipv4: (text) => new RegExp(`^${OCTET}(\\.${OCTET}){3}$`).test(text),
  uri: (text) => /^([A-Za-z][A-Za-z0-9+.-]*:|\/)/.test(text) && !/\s/.test(text),
};

function numberFaults(value: number, schema: Schema, path: string): Cause[] {
  const {
    minimum,
    maximum,
    exclusiveMinimum = false,
    exclusiveMaximum = false,
    multipleOf,
  } = schema;
  const causes: Cause[] = [];
  if (schema.type === 'integer') {
    const { format = 'default' } = schema;
    const range = format === 'int32' && (value < -(2 ** 31) || value >= 2 ** 31);
    const named =
      format === 'default' ? 'integer (default format)' : `integer with format ${format}`;
    if (!Number.isInteger(value) || range) causes.push(formatless(path, named));
  }
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf)) {
    causes.push(broken(path, value, `should be a multiple of ${multipleOf}`));
  }
  if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)) {
    causes.push(
      broken(
        path,
        value,
        `should be less than ${exclusiveMaximum ? '' : 'or equal to '}${maximum}`,
      ),
    );
  }
  if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)) {
    causes.push(
      broken(
        path,
        value,
        `should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${minimum}`,
      ),
    );
  }
  return causes;
}

function arrayFaults(value: readonly unknown[], schema: Schema, path: string): Cause[] {
  const { items, minItems, maxItems } = schema;
  const causes = items
    ? value.flatMap((item, index) => validateValue(item, items, `${path}[${index}]`))
    : [];
  if (minItems !== undefined && value.length < minItems) {
    causes.push(broken(path, value.length, `should have at least ${minItems} items`));
  }
  if (maxItems !== undefined && value.length > maxItems)
    causes.push(cause.tooMany(path, value.length, maxItems));
  return [...causes, ...duplicates(value, schema, path)];
}

/** Returns the members of a set, or the entries of a map list with the same keys, that occur a second time. */
function duplicates(value: readonly unknown[], schema: Schema, path: string): Cause[] {
  const type = schema['x-kubernetes-list-type'];
  if (type !== 'set' && type !== 'map') return [];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const identities = value.map((item) =>
    JSON.stringify(
      type === 'map' && isRecord(item)
        ? Object.fromEntries(keys.map((key) => [key, item[key]]))
        : item,
    ),
  );
  const again = identities.filter((identity, index) => identities.indexOf(identity) !== index);
  return [...new Set(again)].map((identity) => {
    const index = identities.indexOf(identity, identities.indexOf(identity) + 1);
    return cause.duplicate(`${path}[${index}]`, JSON.parse(identity));
  });
}

function objectFaults(
  value: Record<string, unknown>,
  schema: Schema,
  path: string,
  old: unknown,
): Cause[] {
  const {
    properties = {},
    additionalProperties: extra,
    required = [],
    minProperties,
    maxProperties,
  } = schema;
  const size = Object.keys(value).length;
  const before = isRecord(old) ? old : {};
  const causes: Cause[] = [];
  if (minProperties !== undefined && size < minProperties) {
    causes.push(broken(path, size, `should have at least ${minProperties} properties`));
  }
  if (maxProperties !== undefined && size > maxProperties)
    causes.push(cause.tooMany(path, size, maxProperties));
  for (const [member, inner] of Object.entries(value)) {
    const known = properties[member] ?? (typeof extra === 'object' ? extra : undefined);
    const at = path === '' ? member : `${path}.${member}`;
    if (known) causes.push(...validateValue(inner, known, at, before[member]));
  }
  const missing = required.filter((member) => !(member in value));
  return [
    ...causes,
    ...missing.map((member) => cause.required(path === '' ? member : `${path}.${member}`)),
  ];
}

function junctorFaults(value: unknown, schema: Schema, path: string): Cause[] {
  const judge = (part: Schema): Cause[] => validateValue(value, part, path);
  const whole = (rule: string): Cause => cause.invalid('<nil>', '', `"${path}" must ${rule}`);
  const causes = (schema.allOf ?? []).flatMap(judge);
  if (schema.allOf && causes.length > 0) {
    const none = schema.allOf.every((part) => judge(part).length > 0);
    causes.push(whole(`validate all the schemas (allOf)${none ? '. None validated' : ''}`));
  }
  if (schema.anyOf) {
    const results = schema.anyOf.map(judge);
    const accepted = results.some((result) => result.length === 0);
    if (!accepted)
      causes.push(whole('validate at least one schema (anyOf)'), ...(results[0] ?? []));
  }
  if (schema.oneOf) {
    const results = schema.oneOf.map(judge);
    const valid = results.filter((result) => result.length === 0).length;
    const rule = 'validate one and only one schema (oneOf).';
    if (valid === 0) causes.push(whole(`${rule} Found none valid`), ...(results[0] ?? []));
    if (valid > 1) causes.push(whole(`${rule} Found ${valid} valid alternatives`));
  }
  if (schema.not && judge(schema.not).length === 0)
    causes.push(whole('not validate the schema (not)'));
  return causes;
}

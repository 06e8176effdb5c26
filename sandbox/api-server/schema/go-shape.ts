/** Reads built-in kinds with Go's rules for types, zero values and unknown fields; short texts describe their shapes. */
import { rfc3339 } from '../../../src/util/clock.ts';
import { isRecord } from '../../../src/util/json.ts';

/** The members of a Go struct by name. */
export interface Struct {
  readonly name: string;
  readonly fields: ReadonlyMap<string, Field>;
}

interface Field {
  readonly of: string | Struct;
  readonly within: 'none' | 'list' | 'map';
  /**
   * True for a pointer of Go, which keeps a zero value that was given. Other zero values are dropped, unless `always`
   * is set.
   */
  readonly pointer: boolean;
  readonly always: boolean;
}

const single: Field = { of: 'string', within: 'none', pointer: false, always: false };
/** A slice of structs. */
export const listOf = (of: Struct): Field => ({ ...single, of, within: 'list' });
/** A struct that is omitted unless it was given. Other structs are written even if they are empty. */
export const pointerTo = (of: Struct): Field => ({ ...single, of, pointer: true });

const FIELD = /^(\w+)(?::(\[\]|\{\})?(\*)?(\w+))?(!)?$/;

const CONTAINERS = new Map<string | undefined, Field['within']>([
  ['[]', 'list'],
  ['{}', 'map'],
]);

/**
 * `members` lists the names of the members. Each is a string unless its type follows: `count:int32`, `names:[]string`,
 * `labels:{}string`, `seconds:*int64` for a pointer, `raw` for a value that is stored without being checked. A `!` at
 * the end keeps zero values.
 */
export function struct(
  name: string,
  members: string,
  nested: Readonly<Record<string, Struct | Field>> = {},
): Struct {
  const fields = (members.match(/\S+/g) ?? []).map((text): [string, Field] => {
    const [, field = '', container, pointer, of = 'string', always] = FIELD.exec(text) ?? [];
    const within = CONTAINERS.get(container) ?? 'none';
    return [field, { of, within, pointer: pointer !== undefined, always: always !== undefined }];
  });
  const inner = Object.entries(nested).map(([field, of]): [string, Field] => [
    field,
    'fields' in of ? { ...single, of } : of,
  ]);
  return { name, fields: new Map([...fields, ...inner]) };
}

/** An error with the message of Go's decoder. The caller adds the kind. */
export class ShapeError extends Error {}

/**
 * The location of a value in messages. Go names the innermost struct and the path of fields; strict decoding names the
 * indexes, too.
 */
interface Place {
  readonly struct: string;
  readonly path: string;
  readonly exact: string;
  readonly unknown: string[];
}

/** Reads `value` by `shape`, and adds the paths of unknown members to `unknown`. Throws ShapeError. */
export function readShape(
  shape: Struct,
  value: unknown,
  unknown: string[],
): Record<string, unknown> {
  return readStruct(shape, value, { struct: shape.name, path: '', exact: '', unknown });
}

function readStruct(shape: Struct, value: unknown, place: Place): Record<string, unknown> {
  if (value !== null && value !== undefined && !isRecord(value))
    throw mismatch(value, `v1.${shape.name}`, place);
  const given = isRecord(value) ? value : {};
  const join = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`);
  const result: Record<string, unknown> = {};
  for (const [name, field] of shape.fields) {
    const at = {
      ...place,
      struct: shape.name,
      path: join(place.path, name),
      exact: join(place.exact, name),
    };
    const kept = readField(field, given[name], at);
    if (kept !== undefined) result[name] = kept;
  }
  place.unknown.push(
    ...Object.keys(given)
      .filter((name) => !shape.fields.has(name))
      .map((name) => join(place.exact, name)),
  );
  return result;
}

function readField(field: Field, value: unknown, place: Place): unknown {
  if (field.within === 'none') return readSingle(field, value, place);
  const type = typeof field.of === 'string' ? field.of : `v1.${field.of.name}`;
  if (value === null || value === undefined) return field.always ? null : undefined;
  const element = { ...field, within: 'none', always: true } as const;
  if (field.within === 'map') {
    if (!isRecord(value)) throw mismatch(value, `map[string]${type}`, place);
    const entries = Object.entries(value).map(([key, item]) => [
      key,
      readSingle(element, item, place),
    ]);
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  }
  if (!Array.isArray(value)) throw mismatch(value, `[]${type}`, place);
  if (value.length === 0 && !field.always) return undefined;
  return value.map((item, index) =>
    readSingle(element, item, { ...place, exact: `${place.exact}[${index}]` }),
  );
}

const ZERO: Readonly<Record<string, unknown>> = { string: '', bool: false, int32: 0, int64: 0 };
const TIMES: readonly unknown[] = ['time', 'microtime'];

function readSingle({ of, pointer, always }: Field, value: unknown, place: Place): unknown {
  const missing = value === null || value === undefined;
  if (missing && pointer) return undefined;
  if (typeof of !== 'string') return readStruct(of, value, place);
  // A time that is not a pointer is written as null if it is missing.
  if (missing && TIMES.includes(of)) return null;
  if (missing) return always ? ZERO[of] : undefined;
  const result = readScalar(of, value, place);
  return !pointer && !always && of in ZERO && result === ZERO[of] ? undefined : result;
}

/** The JSON types of Go types. All other Go types are numbers in JSON. */
const SCALARS = new Map([
  ['string', 'string'],
  ['bool', 'boolean'],
]);

function readScalar(type: string, value: unknown, place: Place): unknown {
  if (type === 'raw') return value;
  if (type === 'quantity') return readQuantity(value);
  if (TIMES.includes(type)) return readTime(value, type === 'microtime');
  const expected = SCALARS.get(type) ?? 'number';
  if (typeof value !== expected) throw mismatch(value, type, place);
  if (expected === 'number' && !Number.isInteger(value))
    throw mismatch(value, type, place, `number ${String(value)}`);
  return value;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Go refuses a MicroTime that does not have exactly six digits. The digits are kept as text, because a Date holds only
 * three digits.
 */
function readTime(value: unknown, micro: boolean): string {
  const text = String(value);
  const [, fraction = ''] = TIME.exec(text) ?? [text, undefined];
  const fits =
    TIME.test(text) && !Number.isNaN(Date.parse(text)) && (!micro || fraction.length === 7);
  const layout = `2006-01-02T15:04:05${micro ? '.000000' : ''}Z07:00`;
  if (!fits)
    throw new ShapeError(`parsing time ${JSON.stringify(text)} as ${JSON.stringify(layout)}`);
  return micro ? rfc3339(Date.parse(text)).replace('Z', `${fraction}Z`) : rfc3339(Date.parse(text));
}

function readQuantity(value: unknown): string {
  const text = String(value);
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/.test(text)) return text;
  throw new ShapeError(
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  );
}

function mismatch(
  value: unknown,
  type: string,
  { struct: name, path }: Place,
  found = jsonType(value),
): ShapeError {
  return new ShapeError(
    `json: cannot unmarshal ${found} into Go struct field ${name}.${path} of type ${type}`,
  );
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

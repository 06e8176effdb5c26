/** Owns how built-in kinds are read: shapes as data, with the rules of Go's JSON for types, zero values and unknown members. */
import { rfc3339 } from '../../util/clock.ts';
import { isRecord } from '../../util/json.ts';

/**
 * A plain name is dropped where it holds the zero value (`omitempty`), `!` keeps it even then, `*` is a pointer: kept
 * as soon as it was given. `time` is written as null where it is absent, which is what Go does to struct values.
 */
export type Scalar =
  | `${'' | '*'}${'string' | 'bool' | 'int32' | 'int64'}${'' | '!'}`
  | `${'' | '*'}${'time' | 'microtime'}`;
export type Shape = Scalar | 'raw' | 'quantity' | 'intOrString' | List | Table | Struct;
type List = readonly [Shape];

interface Table {
  readonly values: Shape;
}

export interface Struct {
  readonly name: string;
  readonly fields: Readonly<Record<string, Shape>>;
  /** A pointer: absent where it was not given. Other structs are always written, if only as `{}`. */
  readonly pointer: boolean;
}

export const struct = (name: string, fields: Struct['fields']): Struct => ({ name, fields, pointer: false });
export const pointerTo = (target: Struct): Struct => ({ ...target, pointer: true });
export const mapOf = (values: Shape): Table => ({ values });

/** Where a value stands: Go names the innermost struct and the path of fields in its complaints. */
interface Place {
  readonly struct: string;
  readonly path: string;
  /** Path with list indexes, as strict decoding prints it. */
  readonly exact: string;
  /** Members that the shape does not know, in the order they were met. */
  readonly unknown: string[];
}

/** What Go's decoder would say; the caller adds which kind it was reading. */
export class ShapeError extends Error {}

/** Reads `value` by `shape`. Undefined where Go would leave the member out. Throws ShapeError. */
export function readShape(shape: Struct, value: unknown, unknown: string[]): Record<string, unknown> {
  return readStruct(shape, value, { struct: shape.name, path: '', exact: '', unknown }) ?? {};
}

function read(shape: Shape, value: unknown, place: Place): unknown {
  if (typeof shape === 'string') return readScalar(shape, value, place);
  if (isList(shape)) return readList(shape[0], value, place);
  if ('values' in shape) return readMap(shape.values, value, place);
  return readStruct(shape, value, place);
}

const isList = (shape: Shape): shape is List => Array.isArray(shape);

function readStruct(shape: Struct, value: unknown, place: Place): Record<string, unknown> | undefined {
  if (value === null || value === undefined) {
    if (shape.pointer) return undefined;
  } else if (!isRecord(value)) throw mismatch(value, `v1.${shape.name}`, place);
  const given = isRecord(value) ? value : {};
  const result: Record<string, unknown> = {};
  for (const [field, inner] of Object.entries(shape.fields)) {
    const at = { ...place, struct: shape.name, path: join(place.path, field), exact: join(place.exact, field) };
    const kept = read(inner, given[field], at);
    if (kept !== undefined) result[field] = kept;
  }
  for (const field of Object.keys(given)) {
    if (!(field in shape.fields)) place.unknown.push(join(place.exact, field));
  }
  return result;
}

function readList(shape: Shape, value: unknown, place: Place): unknown {
  if (value === null || value === undefined) return undefined;
  if (!Array.isArray(value)) throw mismatch(value, `[]${goName(shape)}`, place);
  if (value.length === 0) return undefined;
  return value.map(
    (item, index) => read(element(shape), item, { ...place, exact: `${place.exact}[${index}]` }) ?? null,
  );
}

function readMap(shape: Shape, value: unknown, place: Place): unknown {
  if (value === null || value === undefined) return undefined;
  if (!isRecord(value)) throw mismatch(value, `map[string]${goName(shape)}`, place);
  const entries = Object.entries(value);
  if (entries.length === 0) return undefined;
  return Object.fromEntries(entries.map(([key, item]) => [key, read(element(shape), item, place)]));
}

/** Elements of lists and maps are written even where they are empty. */
const element = (shape: Shape): Shape => (shape === 'string' ? 'string!' : shape);

function readScalar(shape: Scalar | 'raw' | 'quantity' | 'intOrString', value: unknown, place: Place): unknown {
  if (shape === 'raw') return value ?? undefined;
  const type = shape.replace(/[*!]/g, '');
  if (value === null || value === undefined) {
    if (shape === 'time' || shape === 'microtime') return null;
    return shape.endsWith('!') ? ZERO[type] : undefined;
  }
  const result = convert(type, value, place);
  const zeroDropped = !shape.startsWith('*') && !shape.endsWith('!') && type in ZERO;
  return zeroDropped && result === ZERO[type] ? undefined : result;
}

const ZERO: Readonly<Record<string, unknown>> = { string: '', bool: false, int32: 0, int64: 0 };

function convert(type: string, value: unknown, place: Place): unknown {
  switch (type) {
    case 'string':
      if (typeof value !== 'string') throw mismatch(value, type, place);
      return value;
    case 'bool':
      if (typeof value !== 'boolean') throw mismatch(value, type, place);
      return value;
    case 'time':
      return readTime(value, place);
    case 'microtime':
      return readMicroTime(value, place);
    case 'quantity':
      return readQuantity(value);
    case 'intOrString':
      return value;
    default:
      if (typeof value !== 'number') throw mismatch(value, type, place);
      if (!Number.isInteger(value)) throw mismatch(value, type, place, `number ${value}`);
      return value;
  }
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;
const MICRO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[+-]\d\d:\d\d)$/;

function readTime(value: unknown, place: Place): string {
  const text = timeText(value, place);
  if (!RFC3339.test(text) || Number.isNaN(Date.parse(text))) throw badTime(text, '2006-01-02T15:04:05Z07:00');
  return rfc3339(Date.parse(text));
}

/** Exactly six digits, or Go refuses; they are kept as they are, since a Date holds only three. */
function readMicroTime(value: unknown, place: Place): string {
  const text = timeText(value, place);
  if (!MICRO.test(text) || Number.isNaN(Date.parse(text))) throw badTime(text, '2006-01-02T15:04:05.000000Z07:00');
  return `${rfc3339(Date.parse(text)).slice(0, -1)}${text.slice(19, 26)}Z`;
}

function timeText(value: unknown, place: Place): string {
  if (typeof value !== 'string') throw mismatch(value, 'string', { ...place, struct: '' });
  return value;
}

function badTime(text: string, layout: string): ShapeError {
  const [rest, element] = firstDifference(text, layout);
  return new ShapeError(
    `parsing time ${quote(text)} as ${quote(layout)}: cannot parse ${quote(rest)} as ${quote(element)}`,
  );
}

/** Go names the first part of the layout that the text does not have. */
function firstDifference(text: string, layout: string): [string, string] {
  const parts = layout.match(/2006|-|01|02|T|15|:|04|05|\.000000|Z07:00/g) ?? [];
  let rest = text;
  for (const part of parts) {
    const length = part === 'Z07:00' ? rest.length : part.length;
    const ok = /^\d+$/.test(part) ? /^\d+$/.test(rest.slice(0, length)) : matchesMark(part, rest);
    if (!ok || rest.length < length) return [rest, part];
    rest = rest.slice(length);
    // Go accepts a fraction of a second after the seconds whether or not the layout asks for one.
    if (part === '05' && !layout.includes('.000000')) rest = rest.replace(/^\.\d+/, '');
  }
  return [rest, ''];
}

function matchesMark(part: string, rest: string): boolean {
  if (part === 'Z07:00') return /^(?:Z|[+-]\d\d:\d\d)$/.test(rest);
  return part === '.000000' ? /^\.\d{6}/.test(rest) : rest.startsWith(part);
}

function readQuantity(value: unknown): string {
  const text = String(value);
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/.test(text)) return text;
  const rule = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  throw new ShapeError(`quantities must match the regular expression ${rule}`);
}

function mismatch(value: unknown, type: string, place: Place, found = jsonType(value)): ShapeError {
  return new ShapeError(
    `json: cannot unmarshal ${found} into Go struct field ${place.struct}.${place.path} of type ${type}`,
  );
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

function goName(shape: Shape): string {
  if (typeof shape === 'string') return shape.replace(/[*!]/g, '');
  if (isList(shape)) return `[]${goName(shape[0])}`;
  return 'values' in shape ? `map[string]${goName(shape.values)}` : `v1.${shape.name}`;
}

const join = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`);
const quote = (text: string): string => JSON.stringify(text);

/**
 * Decodes objects from `application/vnd.kubernetes.protobuf`, which kubectl sends for the built-in kinds: `kubectl create
 * namespace` and `kubectl drain`, for example, send no JSON.
 */
import { rfc3339 } from '../../../src/util/clock.ts';
import { isRecord } from '../../../src/util/json.ts';
import { fieldOf, isMessage, type MessageField, messageOf } from './messages.ts';
import { readFields, type WireField } from './wire.ts';

export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** Each object begins with these bytes, and its envelope follows: the message `Unknown` of the API machinery. */
const MAGIC = Buffer.from('k8s\0');
/** The numbers of the fields of the envelope and of its type. */
const ENVELOPE = { type: 1, raw: 2 };
const TYPE = { apiVersion: 1, kind: 2 };

interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  /** The message of the kind; undefined if the server does not read this kind from protobuf. */
  readonly message: string | undefined;
  readonly raw: Buffer;
}

/** Throws RangeError if the bytes are no object of Kubernetes. */
export function readEnvelope(body: Buffer): Envelope {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC))
    throw new RangeError('the body does not begin with the bytes k8s and 0');
  const fields = readFields(body.subarray(MAGIC.length));
  const type = readFields(bytesOf(fields, ENVELOPE.type));
  const apiVersion = bytesOf(type, TYPE.apiVersion).toString();
  const kind = bytesOf(type, TYPE.kind).toString();
  const message = messageOf(apiVersion, kind);
  return { apiVersion, kind, message, raw: bytesOf(fields, ENVELOPE.raw) };
}

function bytesOf(fields: readonly WireField[], wanted: number): Buffer {
  const found = fields.findLast(({ number }) => number === wanted)?.value;
  return Buffer.isBuffer(found) ? found : Buffer.alloc(0);
}

/** Returns the object as JSON has it. Throws RangeError. */
export function decodeMessage(message: string, bytes: Buffer): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const { number, value } of readFields(bytes)) {
    const field = fieldOf(message, number);
    if (field) add(result, field, value);
  }
  return result;
}

function add(
  result: Record<string, unknown>,
  { name, type, within }: MessageField,
  value: bigint | Buffer,
): void {
  if (within === 'map') {
    const entry = readFields(asBytes(value));
    const key = bytesOf(entry, 1).toString();
    const held = result[name];
    result[name] = { ...(isRecord(held) && held), [key]: decode(type, bytesOf(entry, 2)) };
    return;
  }
  const decoded = decode(type, value);
  const held = result[name];
  if (within === 'list')
    result[name] = [...(Array.isArray(held) ? (held as unknown[]) : []), decoded];
  // A message without a name of its own in JSON: its members are members of the outer object.
  else if (name === '.') Object.assign(result, decoded);
  // Protobuf writes empty texts and missing times. JSON leaves them out.
  else if (decoded !== '' && decoded !== undefined) result[name] = decoded;
}

const META = 'apimachinery.pkg.apis.meta.v1';

/** The messages that are no objects in JSON. */
const SPECIAL: Readonly<Record<string, (fields: readonly WireField[]) => unknown>> = {
  [`${META}.Time`]: timeOf,
  [`${META}.MicroTime`]: microTimeOf,
  [`${META}.FieldsV1`]: (fields) => JSON.parse(bytesOf(fields, 1).toString() || '{}') as unknown,
  'apimachinery.pkg.api.resource.Quantity': (fields) => bytesOf(fields, 1).toString(),
  'apimachinery.pkg.util.intstr.IntOrString': (fields) =>
    numberOf(fields, 1) === 0 ? numberOf(fields, 2) : bytesOf(fields, 3).toString(),
};

function decode(type: string, value: bigint | Buffer): unknown {
  const special = SPECIAL[type];
  if (special) return special(readFields(asBytes(value)));
  if (isMessage(type)) return decodeMessage(type, asBytes(value));
  if (type === 'string') return asBytes(value).toString();
  if (type === 'bytes') return asBytes(value).toString('base64');
  if (typeof value !== 'bigint') throw new RangeError(`a field of the type ${type} has bytes`);
  return type === 'bool' ? value !== 0n : Number(BigInt.asIntN(64, value));
}

function asBytes(value: bigint | Buffer): Buffer {
  if (typeof value === 'bigint')
    throw new RangeError(`a field with a length has the number ${value}`);
  return value;
}

function numberOf(fields: readonly WireField[], wanted: number): number {
  const found = fields.findLast(({ number }) => number === wanted)?.value;
  return typeof found === 'bigint' ? Number(BigInt.asIntN(64, found)) : 0;
}

/** The numbers of the fields of a time. */
const TIME = { seconds: 1, nanos: 2 };

/** An empty message is no time. */
function timeOf(fields: readonly WireField[]): string | undefined {
  return fields.length === 0 ? undefined : rfc3339(numberOf(fields, TIME.seconds) * 1000);
}

function microTimeOf(fields: readonly WireField[]): string | undefined {
  const micros = String(Math.trunc(numberOf(fields, TIME.nanos) / 1000)).padStart(6, '0');
  return timeOf(fields)?.replace('Z', `.${micros}Z`);
}

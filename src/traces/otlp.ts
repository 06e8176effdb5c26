/**
 * Writes spans in the JSON encoding of OTLP: ids are hex, enums are numbers, and times are decimal strings of nanoseconds. The format is
 * the message ExportTraceServiceRequest of opentelemetry-proto, as its `docs/specification.md` encodes it.
 */

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanEvent {
  readonly name: string;
  /** The time in milliseconds since the Unix epoch, like all times in this file. */
  readonly at: number;
  readonly attributes: Attributes;
}

export interface Span {
  /** The id of the trace: 32 hex digits. */
  readonly traceId: string;
  /** The id of the span: 16 hex digits. */
  readonly spanId: string;
  /** The id of the parent; undefined for the span of the whole trace. */
  readonly parentSpanId?: string | undefined;
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly attributes: Attributes;
  readonly events?: readonly SpanEvent[];
  /** The result of the work; undefined if the span has no status. */
  readonly status?: { readonly isGood: boolean; readonly message?: string | undefined } | undefined;
}

/** The kind INTERNAL. It means that the span is neither a request that Refit answers nor a request that Refit sends. */
const SPAN_KIND_INTERNAL = 1;
const STATUS_CODE_OK = 1;
const STATUS_CODE_ERROR = 2;
const SCOPE = 'refit';

/** Returns the body of the request that exports the spans. `resource` describes the process that sends them. */
export function exportRequest(
  spans: readonly Span[],
  resource: Attributes,
  version: string,
): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: SCOPE, version }, spans: spans.map(encoded) }],
      },
    ],
  };
}

function encoded(span: Span): object {
  const { traceId, spanId, parentSpanId, name, from, to, attributes, events = [], status } = span;
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name,
    kind: SPAN_KIND_INTERNAL,
    startTimeUnixNano: nanoseconds(from),
    endTimeUnixNano: nanoseconds(to),
    attributes: attributesOf(attributes),
    events: events.map((event) => ({
      timeUnixNano: nanoseconds(event.at),
      name: event.name,
      attributes: attributesOf(event.attributes),
    })),
    ...(status === undefined ? {} : { status: statusOf(status) }),
  };
}

function statusOf({ isGood, message }: NonNullable<Span['status']>): object {
  if (isGood) return { code: STATUS_CODE_OK };
  return { code: STATUS_CODE_ERROR, ...(message === undefined ? {} : { message }) };
}

/** A number cannot hold so many digits, so the zeros are appended as text. */
function nanoseconds(ms: number): string {
  return `${Math.round(ms)}000000`;
}

function attributesOf(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: valueOf(value) }],
  );
}

function valueOf(value: string | number | boolean): object {
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'string') return { stringValue: value };
  // 64-bit integers are decimal strings in this encoding.
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

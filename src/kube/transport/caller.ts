/** The contract of one call to an API server, with three forms of answers. */

export interface Call {
  /** As RBAC names it: get, list, watch, create, update, patch, delete. */
  readonly verb: string;
  /** Plural with subresource, `nodes/status`: also the label of metrics. */
  readonly resource: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly contentType?: string;
  readonly body?: unknown;
  readonly abort?: AbortSignal | undefined;
  readonly deadlineMs: number;
  /** What is wrong with a parsed answer, or with a value of a stream; undefined for a good one. */
  readonly check?: (answer: unknown) => string | undefined;
}

export interface Caller {
  /** The answer, whatever its code; rejects with a TransportError when none comes within the deadline. */
  text(call: Call): Promise<{ status: number; body: string }>;
  /** The parsed answer; rejects with a StatusError when the server refuses. */
  json<T>(call: Call): Promise<T>;
  /** The values of a stream, which breaks when nothing comes for `idleMs`. */
  stream<T>(call: Call, idleMs: number): AsyncIterable<T>;
  close(): void;
}

/** With its question mark; empty without parameters. */
export function queryText(query: NonNullable<Call['query']>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}

/** Owns the contract of one call to an API server: what a client asks for, and the three ways in which it is answered. */

export interface Call {
  /** As RBAC names it: get, list, watch, create, update, patch, delete. */
  readonly verb: string;
  /** Plural with subresource, `nodes/status`: few values, fit for a metric's label. */
  readonly resource: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly contentType?: string;
  readonly body?: unknown;
  readonly abort?: AbortSignal | undefined;
  readonly deadlineMs: number;
}

export interface Caller {
  /** The answer whatever its code; rejects with a TransportError where none came within the deadline. */
  text(call: Call): Promise<{ status: number; body: string }>;
  /** The parsed answer; rejects with a StatusError where the server refused. */
  json<T>(call: Call): Promise<T>;
  /** The values of a stream that may go on for ever, but not stay silent for longer than `idleMs`. */
  stream<T>(call: Call, idleMs: number): AsyncIterable<T>;
  close(): void;
}

/** With its question mark; empty where nothing is asked for. */
export function queryText(query: NonNullable<Call['query']>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}

/** Makes nodes report their steps, and reads the spans that a collector got for them. */
import { expect } from 'vitest';
import { encodeReport } from '../../src/signal/annotations.ts';
import type { SeenRequest } from '../faults/stub-server.ts';
import type { Puppets } from './puppets.ts';

export interface Seen {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}

interface Body {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly Seen[] }[];
  }[];
}

/** Returns the spans of all requests, in the order in which they arrived. */
export function spansIn(requests: readonly SeenRequest[]): Seen[] {
  return requests.flatMap(({ body }) =>
    (JSON.parse(body) as Body).resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap(({ spans }) => spans),
    ),
  );
}

/** Waits until the node has its signal. Then reports that the node is complete, with the durations of two steps. */
export async function complete(puppets: Puppets, name: string): Promise<void> {
  await puppets.until(async () => expect(await puppets.signal(name)).toBeDefined());
  const created = (await puppets.signal(name))?.created ?? '';
  const spent = { Downloading: 40, Restart: 60 };
  await puppets.says(name, 'Completed', encodeReport({ created, spent }));
}

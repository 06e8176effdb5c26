/** The answers that handlers return. */
import type { Version } from './store.ts';

/** A complete answer. A watch is a stream, so watch.ts serves it. */
export interface Reply {
  readonly code: number;
  readonly body: string;
  /** `application/json` if absent. */
  readonly contentType?: string;
}

/** Makes an answer for Status objects and discovery. */
export const jsonReply = (code: number, value: unknown): Reply => ({
  code,
  body: JSON.stringify(value),
});

/** Makes an answer from the text of the object, which is serialised only once for all readers. */
export const objectReply = (code: number, version: Version): Reply => ({
  code,
  body: version.text,
});

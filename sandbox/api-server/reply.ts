/** What handlers return. */
import type { Version } from './store.ts';

/** An answer that is complete: watches are streams, and served by watch.ts. */
export interface Reply {
  readonly code: number;
  readonly body: string;
  /** `application/json` where absent. */
  readonly contentType?: string;
}

/** For Status objects and discovery. */
export const jsonReply = (code: number, value: unknown): Reply => ({
  code,
  body: JSON.stringify(value),
});

/** The text of the object, made once for all readers. */
export const objectReply = (code: number, version: Version): Reply => ({
  code,
  body: version.text,
});

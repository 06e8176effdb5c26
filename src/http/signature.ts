/** Signs requests, so that a receiver can verify that the sender has the key, and when the request was sent. */
import { createHmac } from 'node:crypto';

/** The fewest bytes of a key. A shorter key could be guessed from a signature. */
const SHORTEST_KEY = 16;

export interface Signature {
  /** The value in hexadecimal. No message may show it. */
  readonly hex: string;
  /** The headers that the signature adds to the request. */
  readonly headers: Readonly<Record<'refit-timestamp' | 'refit-signature', string>>;
}

/**
 * Returns the problem of the key, as a clause without a subject; undefined if the key may be used. All bytes of the
 * buffer belong to the key.
 */
export function keyProblem(key: Buffer): string | undefined {
  if (key.length >= SHORTEST_KEY) return undefined;
  return `has ${key.length} bytes; it must have at least ${SHORTEST_KEY}`;
}

/** Signs the body and the time, which is in milliseconds since the Unix epoch. */
export function signatureOf(body: string, key: Buffer, now: number): Signature {
  const timestamp = String(Math.floor(now / 1000));
  const hex = createHmac('sha256', key).update(`${timestamp}.${body}`).digest('hex');
  return {
    hex,
    headers: { 'refit-timestamp': timestamp, 'refit-signature': `sha256=${hex}` },
  };
}

/** The elements of DER (ITU-T X.690) that a certificate consists of. */

/** One element: tag, length, contents. */
export function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), length(body.length), body]);
}

function length(size: number): Buffer {
  if (size < 0x80) return Buffer.from([size]);
  const bytes: number[] = [];
  for (let rest = size; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export const sequence = (...items: readonly Uint8Array[]): Buffer => element(0x30, ...items);
export const set = (...items: readonly Uint8Array[]): Buffer => element(0x31, ...items);
export const utf8 = (value: string): Buffer => element(0x0c, Buffer.from(value));

/** The last `unused` bits of the last byte are padding. */
export function bits(value: Uint8Array, unused = 0): Buffer {
  return element(0x03, Buffer.from([unused]), value);
}

/** Context-specific and constructed, as in `[0] EXPLICIT`. */
export const explicit = (number: number, ...items: readonly Uint8Array[]): Buffer =>
  element(0xa0 | number, ...items);

/** A non-negative integer, given in big-endian bytes. */
export function integer(bytes: Uint8Array): Buffer {
  const negative = ((bytes[0] ?? 0) & 0x80) !== 0;
  return element(0x02, ...(negative ? [Buffer.from([0])] : []), bytes);
}

/** `dotted` as in `2.5.29.17`. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift(0x80 | (rest & 0x7f));
  return bytes;
}

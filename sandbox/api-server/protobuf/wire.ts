/** The wire format of protobuf (https://protobuf.dev/programming-guides/encoding/): numbered fields of two kinds. */

/** A field with its number. A varint is a bigint; texts, bytes and messages are bytes. */
export interface WireField {
  readonly number: number;
  readonly value: bigint | Buffer;
}

const VARINT = 0n;
const WITH_LENGTH = 2n;

/** Reads all fields in order. Throws RangeError if the bytes are no message. */
export function readFields(bytes: Buffer): WireField[] {
  const fields: WireField[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 64n; shift += 7n) {
      const byte = BigInt(bytes.readUInt8(at));
      at += 1;
      value |= (byte & 0x7fn) << shift;
      if (byte < 0x80n) return value;
    }
    throw new RangeError('a varint has more than ten bytes');
  };
  while (at < bytes.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    const type = tag & 7n;
    if (type === VARINT) {
      fields.push({ number, value: varint() });
      continue;
    }
    if (type !== WITH_LENGTH) throw new RangeError(`field ${number} has the wire type ${type}`);
    const length = Number(varint());
    if (at + length > bytes.length) throw new RangeError(`field ${number} ends after the message`);
    fields.push({ number, value: bytes.subarray(at, at + length) });
    at += length;
  }
  return fields;
}

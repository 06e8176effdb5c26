/** Makes an ELF program smaller: cuts off what is never loaded, such as symbols for debuggers. */
import { RefitError } from '../../src/util/errors.ts';

/** Offsets in the header of a 64-bit little-endian file (elf(5)). */
const HEADER = {
  programs: 32,
  sections: 40,
  programSize: 54,
  programCount: 56,
  sectionCount: 60,
  names: 62,
};
const PROGRAM = { offset: 8, fileSize: 32 };
const LOADED = 1;
/** Magic number, 64 bits, little-endian. */
const MAGIC = '7f454c460201';

/**
 * Returns a copy that ends with the last loaded byte and has no table of sections. Only linkers and debuggers read this
 * table.
 */
export function withoutUnloaded(program: Buffer): Buffer {
  if (program.subarray(0, 6).toString('hex') !== MAGIC) {
    throw new RefitError('REFIT_FILE', 'not a 64-bit little-endian ELF file');
  }
  const size = program.readUInt16LE(HEADER.programSize);
  const count = program.readUInt16LE(HEADER.programCount);
  const table = Number(program.readBigUInt64LE(HEADER.programs));
  const ends = Array.from({ length: count }, (_, index) => {
    const at = table + index * size;
    if (program.readUInt32LE(at) !== LOADED) return 0;
    return Number(
      program.readBigUInt64LE(at + PROGRAM.offset) + program.readBigUInt64LE(at + PROGRAM.fileSize),
    );
  });
  const loaded = Buffer.from(program.subarray(0, Math.max(...ends)));
  loaded.writeBigUInt64LE(0n, HEADER.sections);
  loaded.writeUInt16LE(0, HEADER.sectionCount);
  loaded.writeUInt16LE(0, HEADER.names);
  return loaded;
}

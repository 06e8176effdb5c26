/** Finds out from the header of a program for which processor it was built. */
import type { FileHandle } from 'node:fs/promises';

/** The header of an ELF file begins with this magic number. */
const MAGIC = '\x7fELF';
/** Only this many bytes of the header are read. */
const HEADER_BYTES = 20;
/** The position of the byte order in the header, followed by the value for big-endian. */
const ORDER_AT = 5;
const BIG_ENDIAN = 2;
/** The position of the machine in the header. */
const MACHINE_AT = 18;
/** The names of processors, as the program `file` prints them, by the number of the machine in the header. */
const MACHINES = new Map([
  [3, 'x86'],
  [22, 's390x'],
  [40, 'arm'],
  [62, 'x86-64'],
  [183, 'aarch64'],
  [243, 'riscv64'],
]);
/** The name of the processor, as in MACHINES, by the name that Node.js has for the architecture. */
const HOSTS = new Map([
  ['x64', 'x86-64'],
  ['arm64', 'aarch64'],
]);

/**
 * Names the processor of a program that did not start, for a message. Returns undefined if it is that of this host, or
 * if it is not known.
 */
export async function foreignProcessor(file: FileHandle): Promise<string | undefined> {
  const header = Buffer.alloc(HEADER_BYTES);
  await file.read(header, 0, HEADER_BYTES, 0);
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return undefined;
  const isBig = header[ORDER_AT] === BIG_ENDIAN;
  const machine = isBig ? header.readUInt16BE(MACHINE_AT) : header.readUInt16LE(MACHINE_AT);
  const found = MACHINES.get(machine);
  const own = HOSTS.get(process.arch) ?? process.arch;
  if (found === undefined || found === own) return undefined;
  return `is for another processor (${found}; this host is ${own})`;
}

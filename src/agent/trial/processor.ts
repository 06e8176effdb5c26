/** Reads from the header of a program file for which processor the program was built. */
import type { FileHandle } from 'node:fs/promises';

/** The header of an ELF file begins with this magic number. */
const MAGIC = '\x7fELF';
/** Only this many bytes of the header are read. */
const HEADER_BYTES = 20;
/** The offset of the byte order in the header, and below it the value that means big-endian. */
const ORDER_AT = 5;
const BIG_ENDIAN = 2;
/** The offset of the machine number in the header. */
const MACHINE_AT = 18;
/** The names of processors, as the program `file` prints them. The keys are the machine numbers in the header. */
const MACHINES = new Map([
  [3, 'x86'],
  [22, 's390x'],
  [40, 'arm'],
  [62, 'x86-64'],
  [183, 'aarch64'],
  [243, 'riscv64'],
]);
/** The names of processors, as in MACHINES. The keys are the names that Node.js has for architectures. */
const HOSTS = new Map([
  ['x64', 'x86-64'],
  ['arm64', 'aarch64'],
]);

/**
 * Returns a text for a message: the processor of a program that did not start. Returns undefined if it is the processor
 * of this host, or if it is not known.
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

/** Reads from the header of a program for which processor it was built. */
import type { FileHandle } from 'node:fs/promises';

/** The magic number of ELF, with which the header begins. */
const MAGIC = '\x7fELF';
/** Bytes of the header that are read. */
const HEADER_BYTES = 20;
/** Where the header has the byte order, and the value that stands for big-endian. */
const ORDER_AT = 5;
const BIG_ENDIAN = 2;
/** Where the header has the machine. */
const MACHINE_AT = 18;
/** Names of machines, as the program `file` prints them. */
const MACHINES = new Map([
  [3, 'x86'],
  [22, 's390x'],
  [40, 'arm'],
  [62, 'x86-64'],
  [183, 'aarch64'],
  [243, 'riscv64'],
]);
/** By the name that Node.js has for them. */
const HOSTS = new Map([
  ['x64', 'x86-64'],
  ['arm64', 'aarch64'],
]);

/** For a message about a program that did not start; undefined if it is for this host, or if that cannot be known. */
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

/**
 * Reads the files of a version where they are published, for the digests that a plan or a manifest needs. A server may send
 * anything, so the size, the time and the beginning of a file are checked.
 */
import { createHash } from 'node:crypto';
import {
  AnswerRefusal,
  chunksOf,
  httpGet,
  type StallGuard,
  stallGuard,
} from '../../http/http-get.ts';
import type { Environment } from '../../http/proxy-choice.ts';
import { textIn } from '../../util/bounded-file.ts';
import type { Clock } from '../../util/clock.ts';
import { ownMember } from '../../util/own-member.ts';

export interface WebTools {
  readonly clock: Clock;
  /** The environment variables that name the proxies. */
  readonly environment: Environment;
  readonly abort: AbortSignal;
}

const STALL_MS = 30_000;
const MOST_MS = 30 * 60_000;
const MOST_FILE_BYTES = 2 * 1024 ** 3;
const MOST_TEXT_BYTES = 64 * 1024;
const NOT_FOUND = 404;

/** The first bytes of an ELF file, which Linux runs, and the place of its machine (System V ABI). */
const ELF = Buffer.from([0x7f, 0x45, 0x4c, 0x46]);
const MACHINE_AT = 18;
/** The machine of an ELF file for each architecture with little-endian numbers. */
const MACHINES: Readonly<Record<string, number>> = {
  '386': 3,
  arm: 40,
  amd64: 62,
  arm64: 183,
  riscv64: 243,
};

/** Resolves with the SHA-256 of the file. `arch` is the architecture for which the file must be. */
export async function digestOfFile(
  url: string,
  arch: string | undefined,
  tools: WebTools,
): Promise<string> {
  const hash = createHash('sha256');
  await readFile(url, arch, tools, (chunk) => {
    hash.update(chunk);
    return true;
  });
  return hash.digest('hex');
}

/** Rejects if there is no file at the address, or if it is none for the architecture. Reads only its beginning. */
export async function checkFile(
  url: string,
  arch: string | undefined,
  tools: WebTools,
): Promise<void> {
  await readFile(url, arch, tools, () => false);
}

/** Gives each part of the file to `take`, until it returns false. */
async function readFile(
  url: string,
  arch: string | undefined,
  tools: WebTools,
  take: (chunk: Buffer) => boolean,
): Promise<void> {
  await withAnswer(url, MOST_MS, tools, async (parts) => {
    let bytes = 0;
    let head = Buffer.alloc(0);
    for await (const chunk of parts) {
      bytes += chunk.length;
      if (bytes > MOST_FILE_BYTES) throw new Error('the file is larger than 2 GiB');
      if (head.length < MACHINE_AT + 2) {
        head = Buffer.concat([head, chunk.subarray(0, MACHINE_AT + 2)]);
        if (head.length >= MACHINE_AT + 2) checkHead(head, arch);
      }
      if (!take(chunk) && head.length >= MACHINE_AT + 2) return;
    }
    if (bytes === 0) throw new Error('the file is empty');
    if (head.length < MACHINE_AT + 2) checkHead(head, arch);
  });
}

function checkHead(head: Buffer, arch: string | undefined): void {
  if (/^\s*</.test(head.toString('latin1')))
    throw new Error('the server sent HTML instead of the file; is it a login page?');
  const machine = arch === undefined ? undefined : ownMember(MACHINES, arch);
  const isElf = head.length >= MACHINE_AT + 2 && head.subarray(0, ELF.length).equals(ELF);
  if (isElf && machine !== undefined && head.readUInt16LE(MACHINE_AT) !== machine)
    throw new Error(`the file is for another processor than ${arch}`);
}

/** Resolves with the text at the address; undefined if there is nothing. */
export async function textAt(url: string, tools: WebTools): Promise<string | undefined> {
  try {
    return await withAnswer(
      url,
      STALL_MS,
      tools,
      async (parts) => await textIn(parts, MOST_TEXT_BYTES, 'it is larger than 64 KiB'),
    );
  } catch (error) {
    if (error instanceof AnswerRefusal && error.status === NOT_FOUND) return undefined;
    throw error;
  }
}

/**
 * Sends a request, and runs `read` with the parts of the answer. Rejects if the server sends nothing for a while, or if it
 * takes longer than `mostMs`.
 */
async function withAnswer<T>(
  url: string,
  mostMs: number,
  { clock, environment, abort }: WebTools,
  read: (parts: AsyncIterable<Buffer>) => Promise<T>,
): Promise<T> {
  using guard = stallGuard(STALL_MS, mostMs, clock, abort);
  const headers = { 'user-agent': 'refit-upgrade', 'accept-encoding': 'identity' };
  const source = 'the address';
  try {
    using answer = await httpGet({ url, headers, environment, source }, guard.abort);
    return await read(touching(chunksOf(answer.response), guard));
  } catch (error) {
    // The reason of the guard says more than the error of the connection that it has closed.
    guard.abort.throwIfAborted();
    throw error;
  }
}

async function* touching(
  parts: AsyncIterable<Buffer>,
  guard: Pick<StallGuard, 'touch'>,
): AsyncGenerator<Buffer> {
  for await (const part of parts) {
    guard.touch();
    yield part;
  }
}

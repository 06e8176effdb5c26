/**
 * Reads the archive of a k0s backup while k0s writes it, and checks whether the archive contains a complete snapshot of
 * etcd.
 */
import { createHash } from 'node:crypto';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

/** The name under which `k0s restore` looks for the snapshot. */
const ENTRY = 'etcd-snapshot.db';
const BLOCK = 512;
/** The length of the checksum at the end of a snapshot, in bytes. The checksum is the SHA-256 of all earlier bytes. */
const HASH_BYTES = 32;

export interface ArchiveReader {
  /** The stream that receives the compressed archive as k0s prints it. */
  readonly input: Writable;
  /**
   * Resolves once the archive has ended. The result is the problem of the archive, or undefined if the archive contains
   * a complete snapshot of etcd. Never rejects.
   */
  readonly problem: Promise<string | undefined>;
}

/** Returns a reader that keeps no more than a few blocks of the archive in memory. */
export function archiveReader(): ArchiveReader {
  const gunzip = createGunzip();
  const tar = tarReader();
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      tar.read(chunk);
      done();
    },
  });
  const problem = pipeline(gunzip, output).then(
    () => tar.problem(),
    (error: Error) => `its archive cannot be read (${error.message})`,
  );
  return { input: gunzip, problem };
}

/** Reads the headers of a tar archive one after the other, and hashes the entry of the snapshot. */
function tarReader() {
  let header = Buffer.alloc(0);
  let left = 0;
  let padding = 0;
  let entry: SnapshotHash | undefined;
  let verdict: boolean | undefined;
  const finish = (): void => {
    if (entry !== undefined) verdict = entry.isWhole();
    entry = undefined;
  };
  const begin = (): void => {
    const name = textOf(header.subarray(0, 100));
    const size = sizeOf(header.subarray(124, 136));
    // An empty block at this position is the end of the archive, so no entry follows.
    if (name === '' || size === undefined) return;
    left = size;
    padding = (BLOCK - (size % BLOCK)) % BLOCK;
    if (name === ENTRY) entry = snapshotHash();
    if (left === 0) finish();
  };
  return {
    read(chunk: Buffer): void {
      let at = 0;
      while (at < chunk.length) {
        if (left > 0) {
          const part = chunk.subarray(at, at + left);
          entry?.add(part);
          left -= part.length;
          at += part.length;
          if (left === 0) finish();
        } else if (padding > 0) {
          const skipped = Math.min(padding, chunk.length - at);
          padding -= skipped;
          at += skipped;
        } else {
          const part = chunk.subarray(at, at + BLOCK - header.length);
          header = Buffer.concat([header, part]);
          at += part.length;
          if (header.length < BLOCK) return;
          begin();
          header = Buffer.alloc(0);
        }
      }
    },
    problem(): string | undefined {
      if (verdict === true) return undefined;
      return verdict === undefined && entry === undefined
        ? `its archive has no ${ENTRY}`
        : `${ENTRY} in its archive is not whole`;
    },
  };
}

interface SnapshotHash {
  readonly add: (part: Buffer) => void;
  /** Returns true if the hash at the end matches all bytes before it. */
  readonly isWhole: () => boolean;
}

function snapshotHash(): SnapshotHash {
  const hash = createHash('sha256');
  let end = Buffer.alloc(0);
  let bytes = 0;
  return {
    add(part) {
      bytes += part.length;
      const known = Buffer.concat([end, part]);
      const cut = Math.max(0, known.length - HASH_BYTES);
      hash.update(known.subarray(0, cut));
      end = Buffer.from(known.subarray(cut));
    },
    // Guard snapshot-whole. A cut snapshot is no backup.
    isWhole: () => bytes > HASH_BYTES && hash.digest().equals(end),
  };
}

function textOf(field: Buffer): string {
  const [text = ''] = field.toString('utf8').split('\0', 1);
  return text;
}

/**
 * Reads a size. It consists of octal digits, or it is binary if the first bit is set. Go writes binary sizes from 8 GiB
 * on.
 */
function sizeOf(field: Buffer): number | undefined {
  if (((field[0] ?? 0) & 0x80) !== 0) return field.readUIntBE(field.length - 6, 6);
  const digits = textOf(field).trim();
  return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : undefined;
}

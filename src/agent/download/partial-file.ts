/** Stores the bytes of an incomplete download, and records to which payload they belong. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { defined, isRecord, parseJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { type Files, writeDurably } from '../state/durable-files.ts';
import { isBundleName } from './bundle-name.ts';
import { feed } from './hash-file.ts';

export interface PartialPaths {
  readonly part: string;
  readonly record: string;
}

export interface Origin {
  /** A strong ETag or a date, which is sent in If-Range. */
  readonly validator?: string;
  readonly name?: string;
}

/** The record is written before the bytes that depend on it. */
interface PartRecord extends Origin {
  readonly url: string;
  readonly sha256?: string;
  /** The hash of the complete file, recorded by `seal`; absent if the signal names a hash, or if the file is incomplete. */
  readonly sealed?: string;
}

/** A symbolic link is refused, because the user who made the link would decide where the bytes are written. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
/**
 * The partial file is synced each time that this many bytes have been written. A power failure loses about this many
 * bytes at most.
 */
const SYNC_BYTES = 1024 * 1024;

/** An open partial file. Its disposal closes it; the bytes stay on the disk. */
export interface PartialFile extends AsyncDisposable {
  /** True if the bytes come from several answers. Then a wrong hash may come from joining two different payloads. */
  pieced: boolean;
  /** The number of bytes in the file. */
  readonly bytes: number;
  readonly origin: Origin;
  /**
   * The hash that the complete file must have. This is the hash of the signal, or the hash that an earlier `seal`
   * recorded.
   */
  readonly wanted: string | undefined;
  /** The hash of the bytes in the file, in lower-case hexadecimal. */
  readonly sha256: string;
  /** Empties the file for a payload with this origin. */
  readonly restart: (origin: Origin) => Promise<void>;
  readonly append: (chunk: Buffer) => Promise<void>;
  /** Syncs the complete file with its final mode and records its hash, so that a crash does not cause a second download. */
  readonly seal: (mode: number) => Promise<void>;
}

/**
 * Continues with the bytes on the disk if they belong to the payload with this URL and hash. Otherwise it removes them.
 */
export async function openPartial(
  { url, sha256 }: { readonly url: string; readonly sha256: string | undefined },
  { part, record: recordPath }: PartialPaths,
  files: Files,
): Promise<PartialFile> {
  const found = await readRecord(recordPath, files);
  // Guard part-link. The bytes are written to no other place.
  const handle = await files.open(part, APPEND, 0o600);
  const fresh: PartRecord = defined({ url, sha256 });
  let record = fresh;
  let bytes = 0;
  let unsynced = 0;
  let syncing = Promise.resolve();
  let hash = createHash('sha256');
  const save = async (next: PartRecord): Promise<void> => {
    await writeDurably(recordPath, `${JSON.stringify(next)}\n`, files);
    record = next;
  };
  const file: PartialFile = {
    pieced: false,
    get bytes() {
      return bytes;
    },
    get origin() {
      return record;
    },
    get wanted() {
      return record.sha256 ?? record.sealed;
    },
    get sha256() {
      return hash.copy().digest('hex');
    },
    async restart({ validator, name }) {
      await handle.truncate(0);
      await save({ ...fresh, ...(validator && { validator }), ...(name && { name }) });
      bytes = 0;
      unsynced = 0;
      file.pieced = false;
      hash = createHash('sha256');
    },
    async append(chunk) {
      await handle.appendFile(chunk);
      hash.update(chunk);
      bytes += chunk.length;
      unsynced += chunk.length;
      if (unsynced < SYNC_BYTES) return;
      unsynced = 0;
      // This waits only for the previous sync, so that the next bytes are received while the new sync runs.
      await syncing;
      syncing = handle.datasync();
      // A failure of the sync is reported by the next `await` of it.
      syncing.catch(() => undefined);
    },
    async seal(mode) {
      await syncing;
      await handle.chmod(mode);
      await handle.sync();
      await save({ ...record, sealed: file.sha256 });
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await syncing.catch(() => undefined);
      await handle.close();
    },
  };
  try {
    if (found && isContinued(found, fresh)) {
      record = found;
      await using content = await files.open(part, 'r');
      bytes = await feed(content, hash);
      file.pieced = bytes > 0;
    } else await file.restart({});
    return file;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Returns true if the download may continue after the bytes on the disk. Without a known hash only a file that was
 * synced completely is trusted, because a file may have gaps after power loss.
 */
function isContinued(found: PartRecord, { url, sha256 }: PartRecord): boolean {
  const isProvable = sha256 !== undefined || found.sealed !== undefined;
  // Guard part-origin. Bytes of another download are not continued.
  return isProvable && found.url === url && found.sha256 === sha256;
}

/**
 * Returns the hash from the signal, if the signal has one. Otherwise it returns the hash from the record on the disk.
 * The signal takes precedence, because somebody may have changed the record.
 */
export async function wantedHash(
  sha256: string | undefined,
  path: string,
  files: Files,
): Promise<string | undefined> {
  // Guard signal-hash. A changed record cannot replace the hash of the signal.
  if (sha256 !== undefined) return sha256.toLowerCase();
  const record = await readRecord(path, files);
  return record?.sha256 ?? record?.sealed;
}

/** Returns undefined if the record cannot be read. Then the bytes are downloaded again. */
async function readRecord(path: string, files: Files): Promise<PartRecord | undefined> {
  const value = parseJson(await files.readFile(path, 'utf8').catch(() => undefined));
  return isPartRecord(value) ? value : undefined;
}

/**
 * Returns true if the record is valid. The name in the record becomes part of a path. Somebody may have changed the
 * record, so the name must not lead to another directory.
 */
function isPartRecord(value: unknown): value is PartRecord {
  if (!isRecord(value) || typeof value['url'] !== 'string') return false;
  const areTexts = ['sha256', 'sealed', 'validator'].every((key) =>
    ['string', 'undefined'].includes(typeof ownMember(value, key)),
  );
  // Guard record-name. The name of a bundle leads to no other directory.
  return areTexts && (value['name'] === undefined || isBundleName(value['name']));
}

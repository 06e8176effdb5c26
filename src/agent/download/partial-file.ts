/** Owns the bytes of a download that is not whole yet, and the note of what they are a part of. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { isRecord } from '../../util/json.ts';
import type { Files } from '../state/durable-files.ts';
import { writeDurably } from '../state/durable-files.ts';
import { feed } from './hash-file.ts';

/** What must be equal for bytes of two attempts to belong together. */
export interface PayloadIdentity {
  readonly url: string;
  readonly sha256: string | undefined;
}

export interface PartialPaths {
  readonly part: string;
  /** JSON file with the note. */
  readonly record: string;
}

/** What the server says of the payload that the bytes are from. */
export interface Origin {
  /** Strong ETag or date, as If-Range needs it. */
  readonly validator?: string;
  /** Name for the file, where it is not known before. */
  readonly name?: string;
}

/** The note: written before bytes that rely on it. */
interface PartRecord extends Origin {
  readonly url: string;
  readonly sha256?: string;
  /** Hash of the whole, where the payload's own is not known. */
  readonly sealed?: string;
}

/** A symbolic link is refused: the bytes would go wherever somebody else decided. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
/** Power loss takes no more than about this along. */
const SYNC_BYTES = 1024 * 1024;

export class PartialFile implements AsyncDisposable {
  /** True where the bytes come from more than one answer, so that a wrong hash need not be the payload's fault. */
  pieced: boolean;
  readonly #handle: FileHandle;
  readonly #recordPath: string;
  readonly #files: Files;
  #record: PartRecord;
  #bytes: number;
  #unsynced = 0;
  #syncing: Promise<void> = Promise.resolve();
  #hash = createHash('sha256');

  private constructor(handle: FileHandle, recordPath: string, record: PartRecord, files: Files) {
    this.#handle = handle;
    this.#recordPath = recordPath;
    this.#record = record;
    this.#files = files;
    this.#bytes = 0;
    this.pieced = false;
  }

  /** Continues what belongs to the payload, and empties what does not. */
  static async open(
    { url, sha256 }: PayloadIdentity,
    { part, record: recordPath }: PartialPaths,
    files: Files,
  ): Promise<PartialFile> {
    const found = await readRecord(recordPath, files);
    const fresh: PartRecord = sha256 === undefined ? { url } : { url, sha256 };
    const handle = await files.open(part, APPEND, 0o600);
    try {
      const file = new PartialFile(handle, recordPath, fresh, files);
      // Without a hash to prove them, bytes are trusted only once they were synced as a whole: power loss leaves gaps.
      const isProvable = sha256 !== undefined || found?.sealed !== undefined;
      if (!isProvable || found?.url !== url || found.sha256 !== sha256) {
        await file.restart({});
        return file;
      }
      file.#record = found;
      file.#bytes = await feed(part, file.#hash, files);
      file.pieced = file.#bytes > 0;
      return file;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  get origin(): Origin {
    return this.#record;
  }

  /** Hash of the whole as far as it is known before the download: from the signal, or from an earlier seal. */
  get wanted(): string | undefined {
    return this.#record.sha256 ?? this.#record.sealed;
  }

  /** Lower-case hexadecimal sha256 of the bytes so far. */
  get sha256(): string {
    return this.#hash.copy().digest('hex');
  }

  async append(chunk: Buffer): Promise<void> {
    await this.#handle.appendFile(chunk);
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
    this.#unsynced += chunk.length;
    if (this.#unsynced < SYNC_BYTES) return;
    this.#unsynced = 0;
    // The next bytes are received meanwhile: what waits in the network is lost where the agent is killed.
    await this.#syncing;
    this.#syncing = this.#handle.datasync();
    // Who waits for it next is told.
    this.#syncing.catch(() => undefined);
  }

  /** Empties the file, for bytes from `origin`. */
  async restart({ validator, name }: Origin): Promise<void> {
    const { url, sha256 } = this.#record;
    await this.#handle.truncate(0);
    await this.#save({ url, ...(sha256 && { sha256 }), ...(validator && { validator }), ...(name && { name }) });
    this.#bytes = 0;
    this.#unsynced = 0;
    this.#hash = createHash('sha256');
    this.pieced = false;
  }

  /** Syncs the whole under its final mode and remembers its hash, so that a crash from here on costs no second download. */
  async seal(mode: number): Promise<void> {
    await this.#syncing;
    await this.#handle.chmod(mode);
    await this.#handle.sync();
    await this.#save({ ...this.#record, sealed: this.sha256 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#syncing.catch(() => undefined);
    await this.#handle.close();
  }

  async #save(record: PartRecord): Promise<void> {
    await writeDurably(this.#recordPath, `${JSON.stringify(record)}\n`, this.#files);
    this.#record = record;
  }
}

/** A note that cannot be read is none: the bytes are fetched again. */
async function readRecord(path: string, files: Files): Promise<PartRecord | undefined> {
  try {
    const value: unknown = JSON.parse(await files.readFile(path, 'utf8'));
    return isRecord(value) ? (value as unknown as PartRecord) : undefined;
  } catch {
    return undefined;
  }
}

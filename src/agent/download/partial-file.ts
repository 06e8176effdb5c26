/** The bytes of an incomplete download, with a record of what they belong to. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { isRecord, parseJson } from '../../util/json.ts';
import { type Files, writeDurably } from '../state/durable-files.ts';
import { isBundleName } from './bundle-name.ts';
import { feed } from './hash-file.ts';

export interface PartialPaths {
  readonly part: string;
  readonly record: string;
}

export interface Origin {
  /** Strong ETag or date, for If-Range. */
  readonly validator?: string;
  readonly name?: string;
}

/** Written before the bytes that rely on it. */
interface PartRecord extends Origin {
  readonly url: string;
  readonly sha256?: string;
  /** Hash of the complete file, for a payload without a known hash. */
  readonly sealed?: string;
}

/** A symbolic link is refused: somebody else would decide where the bytes go. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
/** About so much is lost at power loss. */
const SYNC_BYTES = 1024 * 1024;

export class PartialFile implements AsyncDisposable {
  /** True when the bytes come from several answers: then a wrong hash may be a wrong continuation. */
  pieced = false;
  readonly #handle: FileHandle;
  readonly #recordPath: string;
  readonly #files: Files;
  #record: PartRecord;
  #bytes = 0;
  #unsynced = 0;
  #syncing: Promise<void> = Promise.resolve();
  #hash = createHash('sha256');

  private constructor(handle: FileHandle, recordPath: string, record: PartRecord, files: Files) {
    this.#handle = handle;
    this.#recordPath = recordPath;
    this.#record = record;
    this.#files = files;
  }

  /** Continues bytes that belong to the payload with this URL and hash, and drops others. */
  static async open(
    { url, sha256 }: { readonly url: string; readonly sha256: string | undefined },
    { part, record: recordPath }: PartialPaths,
    files: Files,
  ): Promise<PartialFile> {
    const found = await readRecord(recordPath, files);
    const fresh: PartRecord = sha256 === undefined ? { url } : { url, sha256 };
    const handle = await files.open(part, APPEND, 0o600);
    try {
      const file = new PartialFile(handle, recordPath, fresh, files);
      // Without a known hash, only a completely synced file is trusted: power loss leaves gaps.
      const isProvable = sha256 !== undefined || found?.sealed !== undefined;
      if (!isProvable || found?.url !== url || found.sha256 !== sha256) {
        await file.restart({});
        return file;
      }
      file.#record = found;
      await using content = await files.open(part, 'r');
      file.#bytes = await feed(content, file.#hash);
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

  /** Hash of the complete file, from the signal or from an earlier seal. */
  get wanted(): string | undefined {
    return this.#record.sha256 ?? this.#record.sealed;
  }

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
    // Not awaited here: the next bytes are received meanwhile.
    await this.#syncing;
    this.#syncing = this.#handle.datasync();
    // The next await reports a failure.
    this.#syncing.catch(() => undefined);
  }

  async restart({ validator, name }: Origin): Promise<void> {
    const { url, sha256 } = this.#record;
    await this.#handle.truncate(0);
    await this.#save({ url, ...(sha256 && { sha256 }), ...(validator && { validator }), ...(name && { name }) });
    this.#bytes = 0;
    this.#unsynced = 0;
    this.#hash = createHash('sha256');
    this.pieced = false;
  }

  /** Syncs the complete file with its final mode and records its hash, so that a crash costs no second download. */
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

/** The signal's hash, if it has one: the record on the disk may have been changed. Else the recorded one. */
export async function wantedHash(sha256: string | undefined, path: string, files: Files): Promise<string | undefined> {
  if (sha256 !== undefined) return sha256.toLowerCase();
  const record = await readRecord(path, files);
  return record?.sha256 ?? record?.sealed;
}

/** Without a readable record the bytes are fetched again. */
async function readRecord(path: string, files: Files): Promise<PartRecord | undefined> {
  const value = parseJson(await files.readFile(path, 'utf8').catch(() => undefined));
  return isPartRecord(value) ? value : undefined;
}

/** The name becomes a path: a record that somebody changed must not lead out of the directory. */
function isPartRecord(value: unknown): value is PartRecord {
  if (!isRecord(value) || typeof value['url'] !== 'string') return false;
  const areTexts = ['sha256', 'sealed', 'validator'].every((key) =>
    ['string', 'undefined'].includes(typeof value[key]),
  );
  return areTexts && (value['name'] === undefined || isBundleName(value['name']));
}

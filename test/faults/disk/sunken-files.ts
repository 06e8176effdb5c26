/** Simulates files that a loss of power can undo: contents and names stay in a cache until they are synced. */
import { constants } from 'node:fs';
import { dirname } from 'node:path';
import type { Files } from '../../../src/agent/state/durable-files.ts';

/** A file, which may have any number of names. */
interface Inode {
  data: Buffer;
  /** The content on the disk; undefined if no content was ever synced. */
  synced: Buffer | undefined;
  mode: number;
  /** True for a directory. */
  readonly isDirectory?: boolean;
}

/** Called before each operation. Throws the error of the disk, or never settles if the process dies. */
export type BeforeOperation = (operation: string, path: string) => Promise<void>;

/**
 * The unsynced data that a loss of power destroys: nothing, everything, or only contents, so that files without contents
 * remain.
 */
export type Loss = 'nothing' | 'everything' | 'contents';

export const LOSSES: readonly Loss[] = ['nothing', 'everything', 'contents'];

export class SunkenFiles {
  readonly #before: BeforeOperation;
  readonly #lies: boolean;
  #names = new Map<string, Inode>();
  /** The directories that were created during the run. */
  readonly #made = new Set<string>();
  /** The names on the disk. The names in a directory are those of its last sync. */
  #syncedNames = new Map<string, Inode>();

  /** If `lies` is true, nothing is ever synced, although every call reports success. */
  constructor(before: BeforeOperation, lies = false) {
    this.#before = before;
    this.#lies = lies;
  }

  /** The part of node:fs/promises that the agent uses. */
  get files(): Files {
    return this as unknown as Files;
  }

  /** Creates a file whose contents and name are already synced to the disk. */
  put(path: string, data: Buffer, mode = 0o755): void {
    const inode = { data, synced: data, mode };
    this.#names.set(path, inode);
    this.#syncedNames.set(path, inode);
  }

  /** Reads without faults; undefined if there is no such file. */
  peek(path: string): Buffer | undefined {
    return this.#names.get(path)?.data;
  }

  /**
   * Returns an object that identifies the file with this name. Two names of the same file return the same object. A
   * name returns the same object until it names another file.
   */
  identity(path: string): object | undefined {
    return this.#names.get(path);
  }

  /** The sorted paths of all files, without directories. */
  get paths(): string[] {
    return [...this.#names]
      .flatMap(([path, { isDirectory }]) => (isDirectory === true ? [] : [path]))
      .toSorted();
  }

  losePower(loss: Loss): void {
    if (loss === 'nothing') return;
    const names = loss === 'contents' ? this.#names : this.#syncedNames;
    for (const inode of new Set([...this.#names.values(), ...this.#syncedNames.values()])) {
      inode.data = inode.synced ?? Buffer.alloc(0);
      inode.synced = inode.data;
    }
    // If the directory of a file is lost, the file is lost as well.
    const kept = [...names].filter(
      ([path]) => !this.#made.has(dirname(path)) || names.has(dirname(path)),
    );
    this.#names = new Map(kept);
    this.#syncedNames = new Map(kept);
  }

  async open(path: string, flags: string | number = 'r', mode = 0o666) {
    await this.#before(`open ${describe(flags)}`, path);
    const mayCreate =
      flags === 'w' || (typeof flags === 'number' && (flags & constants.O_CREAT) !== 0);
    const isDirectory = this.#isDirectory(path);
    if (!mayCreate && !isDirectory) this.#inode(path);
    if (mayCreate && !this.#names.has(path))
      this.#names.set(path, { data: Buffer.alloc(0), synced: undefined, mode });
    const inode = isDirectory ? undefined : this.#names.get(path);
    if (inode && flags === 'w') inode.data = Buffer.alloc(0);
    return this.#handle(path, inode);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#before('rename', to);
    const inode = this.#inode(from);
    // Does nothing if both names belong to one file, as rename(2) does.
    if (this.#names.get(to) === inode) return;
    this.#names.set(to, inode);
    this.#names.delete(from);
  }

  async link(existing: string, path: string): Promise<void> {
    await this.#before('link', path);
    if (this.#names.has(path)) throw failure('EEXIST', path);
    this.#names.set(path, this.#inode(existing));
  }

  async copyFile(from: string, to: string): Promise<void> {
    await this.#before('copyFile', to);
    const { data, mode } = this.#inode(from);
    this.#names.set(to, { data: Buffer.from(data), synced: undefined, mode });
  }

  /** Works like `cp --attributes-only`, but simulates only the mode. */
  async copyAttributes(from: string, to: string): Promise<void> {
    await this.#before('copyAttributes', to);
    this.#inode(to).mode = this.#inode(from).mode;
  }

  async rm(path: string, { force = false } = {}): Promise<void> {
    await this.#before('rm', path);
    if (!this.#names.delete(path) && !force) throw failure('ENOENT', path);
  }

  async mkdir(path: string, mode: number): Promise<void> {
    await this.#before('mkdir', path);
    if (this.#isDirectory(path)) throw failure('EEXIST', path);
    if (!this.#isDirectory(dirname(path))) throw failure('ENOENT', path);
    this.#names.set(path, {
      data: Buffer.alloc(0),
      synced: Buffer.alloc(0),
      mode,
      isDirectory: true,
    });
    this.#made.add(path);
  }

  /** Reports the same device for all paths, because all files are on one file system. */
  async stat(path: string): Promise<{ dev: number }> {
    await this.#before('stat', path);
    if (!this.#isDirectory(path)) this.#inode(path);
    return { dev: 1 };
  }

  async chmod(path: string, mode: number): Promise<void> {
    await this.#before('chmod', path);
    this.#inode(path).mode = mode;
  }

  async readFile(path: string, encoding: 'utf8'): Promise<string> {
    await this.#before('readFile', path);
    return this.#inode(path).data.toString(encoding);
  }

  async lstat(path: string) {
    await this.#before('lstat', path);
    const { data, mode } = this.#inode(path);
    return { isFile: () => true, size: data.length, mode };
  }

  async statfs() {
    return await Promise.resolve({ bavail: 1_000_000, bsize: 4096, blocks: 2_000_000 });
  }

  #handle(path: string, inode: Inode | undefined) {
    let position = 0;
    const held = (): Inode => inode ?? raise(failure('EISDIR', path));
    const change = async (operation: string, make: (data: Buffer) => Buffer): Promise<void> => {
      await this.#before(operation, path);
      held().data = make(held().data);
    };
    const sync = async (operation: string): Promise<void> => {
      await this.#before(operation, path);
      if (this.#lies) return;
      if (inode) inode.synced = inode.data;
      else this.#syncNamesIn(path);
    };
    return {
      appendFile: async (chunk: Buffer) =>
        await change('append', (data) => Buffer.concat([data, chunk])),
      writeFile: async (text: string) =>
        await change('write', (data) => Buffer.concat([data, Buffer.from(text)])),
      truncate: async (length: number) =>
        await change('truncate', (data) => data.subarray(0, length)),
      chmod: async (mode: number) => {
        await this.#before('chmod', path);
        held().mode = mode;
      },
      read: async (buffer: Buffer) => {
        await this.#before('read', path);
        const bytesRead = held().data.copy(buffer, 0, position);
        position += bytesRead;
        return { bytesRead };
      },
      sync: async () => await sync('sync'),
      datasync: async () => await sync('datasync'),
      close: async () => await Promise.resolve(),
      [Symbol.asyncDispose]: async () => await Promise.resolve(),
    };
  }

  #syncNamesIn(directory: string): void {
    for (const path of this.#syncedNames.keys())
      if (dirname(path) === directory) this.#syncedNames.delete(path);
    for (const [path, inode] of this.#names)
      if (dirname(path) === directory) this.#syncedNames.set(path, inode);
  }

  #isDirectory(path: string): boolean {
    return (
      this.#names.get(path)?.isDirectory === true ||
      [...this.#names.keys()].some((name) => dirname(name) === path)
    );
  }

  #inode(path: string): Inode {
    return this.#names.get(path) ?? raise(failure('ENOENT', path));
  }
}

/** Returns an error with the form of the errors that the operating system reports. */
export function failure(code: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: made up, '${path}'`), { code, path });
}

function raise(error: Error): never {
  throw error;
}

function describe(flags: string | number): string {
  return typeof flags === 'number' ? 'to append' : flags;
}

/** A real ext4 file system of a chosen size, in an image that is mounted at a temporary directory. Only root can mount it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdir, open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = 1024 * 1024;

export class SmallDisk implements AsyncDisposable {
  /** The path at which the disk is mounted. */
  readonly path: string;
  readonly #root: string;

  private constructor(root: string, path: string) {
    this.#root = root;
    this.path = path;
  }

  static async mount(mebibytes: number): Promise<SmallDisk> {
    const root = mkdtempSync(join(tmpdir(), 'refit-disk-'));
    const image = join(root, 'image');
    const path = join(root, 'd');
    await mkdir(path);
    try {
      writeFileSync(image, '');
      truncateSync(image, mebibytes * MIB);
      // No blocks are reserved for root. The agent runs as root, and the disk must be full for the agent as well.
      execFileSync('mkfs.ext4', ['-q', '-m', '0', image]);
      execFileSync('mount', ['-o', 'loop', image, path]);
    } catch (error) {
      rmSync(root, { recursive: true });
      throw error;
    }
    return new SmallDisk(root, path);
  }

  /** Bytes that can still be written. */
  async free(): Promise<number> {
    const { bavail, bsize } = await statfs(this.path);
    return bavail * bsize;
  }

  /** Fills the disk until only this many bytes are free. Returns a function that frees the space again. */
  async fill(leaveBytes: number): Promise<() => Promise<void>> {
    const ballast = join(this.path, 'ballast');
    const handle = await open(ballast, 'w');
    try {
      for (const bytes of [MIB, 4096, 512])
        await writeUntilFull(handle, bytes, async () => await this.free(), leaveBytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return async () => await rm(ballast);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Unmounts lazily, because a killed process may hold a file of the disk open for a moment.
    execFileSync('umount', ['--lazy', this.path]);
    await rm(this.#root, { recursive: true });
  }
}

async function writeUntilFull(
  handle: Awaited<ReturnType<typeof open>>,
  bytes: number,
  free: () => Promise<number>,
  leaveBytes: number,
): Promise<void> {
  const block = Buffer.alloc(bytes, 1);
  while ((await free()) - bytes >= leaveBytes) {
    try {
      await handle.writeFile(block);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return;
      throw error;
    }
  }
}

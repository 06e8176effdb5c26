/** Owns the text of files that others replace while we run: tokens, certificates, keys. */
import { readFile, stat } from 'node:fs/promises';
import type { Clock } from '../../util/clock.ts';

/** Milliseconds for which a file is not looked at again: kubelet rotates long before the old content expires. */
const CHECK_INTERVAL_MS = 1_000;

export class RotatingFile {
  readonly #path: string;
  readonly #clock: Clock;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #stamp = '';
  #text = '';

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /** Reads again only where size, inode or modification time changed; rejects with the file system's error. */
  async read(): Promise<string> {
    if (this.#clock.monotonic() - this.#checkedAt < CHECK_INTERVAL_MS) return this.#text;
    const { mtimeMs, size, ino } = await stat(this.#path);
    const stamp = `${mtimeMs}:${size}:${ino}`;
    if (stamp !== this.#stamp) {
      this.#text = await readFile(this.#path, 'utf8');
      this.#stamp = stamp;
    }
    this.#checkedAt = this.#clock.monotonic();
    return this.#text;
  }

  /** The next read looks at the file whatever the time. */
  expire(): void {
    this.#checkedAt = Number.NEGATIVE_INFINITY;
  }
}

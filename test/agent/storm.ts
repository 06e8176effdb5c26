/** Writes an object all the time, as another client could do. */
import { setTimeout } from 'node:timers/promises';
import type { Rig } from './rig.ts';

const PAUSE_MS = 50;
/**
 * The pause doubles after each group of this many writes. On a busy machine, the agent needs a longer pause to write
 * between two writes of the storm.
 */
const WRITES_AT_ONE_PACE = 100;

/**
 * Each write waits for the previous write. Otherwise the writes would queue up on a busy machine, and no other write
 * would succeed.
 */
export class Storm implements AsyncDisposable {
  /** The number of writes that succeeded. */
  writes = 0;
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(rig: Rig) {
    this.#running = this.#write(rig);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #write(rig: Rig): Promise<void> {
    while (!this.#isOver) {
      // A failed write is not counted and not reported, because the work of the agent shows whether it matters.
      await rig.annotate({ 'example.com/storm': String(this.writes) }).then(
        () => this.writes++,
        () => undefined,
      );
      await setTimeout(PAUSE_MS * 2 ** Math.floor(this.writes / WRITES_AT_ONE_PACE));
    }
  }
}

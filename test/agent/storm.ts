/** Writes an object all the time, as another client could do. */
import { setTimeout } from 'node:timers/promises';
import type { Rig } from './rig.ts';

const PAUSE_MS = 50;
/**
 * After this many writes, each pause doubles. On a busy machine, the agent needs more time than one pause to write
 * between two writes.
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
      // A write that fails does not count. Whether this matters is visible in the work of the agent.
      await rig.annotate({ 'example.com/storm': String(this.writes) }).then(
        () => this.writes++,
        () => undefined,
      );
      await setTimeout(PAUSE_MS * 2 ** Math.floor(this.writes / WRITES_AT_ONE_PACE));
    }
  }
}

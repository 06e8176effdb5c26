/** Somebody who writes an object all the time. */
import { setTimeout } from 'node:timers/promises';
import type { Rig } from './rig.ts';

const PAUSE_MS = 50;
/** After this many writes each pause doubles: on a busy machine the agent needs longer than one pause to write between two writes. */
const WRITES_AT_ONE_PACE = 100;

/** Each write waits for the one before: on a busy machine they would pile up, and no other one would get through. */
export class Storm implements AsyncDisposable {
  /** Those that were answered. */
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
      // A refused write is one less; what the agent does says whether it matters.
      await rig.annotate({ 'example.com/storm': String(this.writes) }).then(
        () => this.writes++,
        () => undefined,
      );
      await setTimeout(PAUSE_MS * 2 ** Math.floor(this.writes / WRITES_AT_ONE_PACE));
    }
  }
}

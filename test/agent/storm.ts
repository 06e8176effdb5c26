/** Somebody who writes an object all the time. */
import { setTimeout } from 'node:timers/promises';
import type { Rig } from './rig.ts';

const PAUSE_MS = 50;

/** Each write waits for the one before: on a busy machine they would pile up, and no other one would get through. */
export class Storm implements AsyncDisposable {
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
      await rig.annotate({ 'example.com/storm': String(++this.writes) });
      await setTimeout(PAUSE_MS);
    }
  }
}

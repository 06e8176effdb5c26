/** Waits for a condition. If the condition does not become true in time, the error says what was awaited. */
import { sleep, systemClock } from '../../src/util/clock.ts';

const PAUSE_MS = 250;

export async function until(
  what: string,
  seconds: number,
  condition: () => boolean | Promise<boolean>,
  abort?: AbortSignal,
): Promise<void> {
  const end = systemClock.monotonic() + seconds * 1000;
  while (!(await condition())) {
    if (systemClock.monotonic() > end) throw new Error(`waited ${seconds} s for ${what}`);
    await sleep(systemClock, PAUSE_MS, abort);
  }
}

/** Keeps the heap of a controller small. This costs little CPU time. */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/**
 * Bytes of garbage that a small heap may contain. This is little memory, and each collection costs
 * as much CPU time as several decisions.
 */
const GARBAGE = 40 * 1024 * 1024;
const LOOK_AT_HEAP_MS = 100;

/**
 * Makes V8 collect garbage before a large heap grows much. The flag is set while the process runs. If the flag were set
 * at the start, V8 would compile the built-in code of Node.js again.
 */
export function keepHeapSmall(): void {
  setInterval(() => {
    const percent = Math.round((100 * GARBAGE) / getHeapStatistics().used_heap_size);
    setFlagsFromString(`--heap-growing-percent=${Math.min(100, Math.max(20, percent))}`);
  }, LOOK_AT_HEAP_MS).unref();
}

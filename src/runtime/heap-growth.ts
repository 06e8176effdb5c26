/** Owns how much a process that runs for months may hold in memory beside what it needs. */
import { setFlagsFromString } from 'node:v8';

/**
 * Percent. V8 lets the heap grow to several times what is in use before it looks for garbage, as long as the machine has
 * memory: measured over 15,000 nodes, 466 MiB become 270 by this, for 7 % more CPU time.
 */
const GROWTH = 30;

/** Takes effect with the next collection. Call it before anything large is read. */
export function boundHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`);
}

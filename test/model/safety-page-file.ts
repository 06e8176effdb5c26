/** Reads and writes docs/internals/safety.md. */
import { readFileSync, writeFileSync } from 'node:fs';

const PAGE = new URL('../../docs/internals/safety.md', import.meta.url);

export function readPage(): string {
  return readFileSync(PAGE, 'utf8');
}

export function writePage(text: string): void {
  writeFileSync(PAGE, text);
}

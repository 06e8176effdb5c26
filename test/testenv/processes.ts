/** Owns the question which processes of this machine belong to something. */
import { readdirSync, readFileSync } from 'node:fs';

/** Command lines of all processes that name `text`; one that has ended has none, even where nobody has waited for it. */
export function processesNaming(text: string): string[] {
  return readdirSync('/proc')
    .filter((entry) => Number.isInteger(Number(entry)))
    .map(commandLine)
    .filter((line) => line.includes(text));
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return ''; // it ended while we looked
  }
}

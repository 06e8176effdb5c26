/** Finds processes of this machine by their command line. */
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Command lines that contain `text`. A process that has ended has no command line, even if no parent has waited for it.
 */
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
    return ''; // The process ended while this function ran.
  }
}

/** Owns the names of the files that the agent keeps beside the binary and in its state directory. */
import { basename, dirname, join } from 'node:path';

/** Staged and next file bear the names that the original gives them, so that each finds what the other left. */
export function pathsBeside(binary: string): { staged: string; part: string; previous: string } {
  return {
    staged: `${binary}.tmp`,
    part: join(dirname(binary), `.${basename(binary)}.tmp.part`),
    previous: `${binary}.previous`,
  };
}

export function pathsIn(stateDirectory: string): { journal: string; record: string; lock: string } {
  return {
    journal: join(stateDirectory, 'journal.json'),
    record: join(stateDirectory, 'download.json'),
    lock: join(stateDirectory, 'agent.lock'),
  };
}

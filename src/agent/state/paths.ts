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

export interface StatePaths {
  readonly journal: string;
  /** Of the second agent, on a host whose airgap signals are on another object. */
  readonly airgapJournal: string;
  readonly lock: string;
  /** Notes of downloads that are not whole yet. */
  readonly record: string;
  readonly bundleRecord: string;
  /** The airgap bundles that were placed. */
  readonly bundles: string;
}

export function pathsIn(stateDirectory: string): StatePaths {
  return {
    journal: join(stateDirectory, 'journal.json'),
    airgapJournal: join(stateDirectory, 'journal-airgap.json'),
    lock: join(stateDirectory, 'agent.lock'),
    record: join(stateDirectory, 'download.json'),
    bundleRecord: join(stateDirectory, 'download-airgap.json'),
    bundles: join(stateDirectory, 'airgap-bundles.json'),
  };
}

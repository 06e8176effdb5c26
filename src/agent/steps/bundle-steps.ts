/** Owns the steps of an airgapupdate: the bundle is put where the service imports it from, and nothing is restarted. */
import type { BundleJournal } from '../journal.ts';
import type { Step } from './step.ts';

/** For a signal that still stands. */
export function nextBundleStep({ phase, failure }: BundleJournal, status: string | undefined): Step {
  switch (phase) {
    case 'wanted':
      return status === undefined ? { kind: 'report', status: 'Downloading' } : { kind: 'fetch-bundle' };
    case 'placed':
      return { kind: 'report', status: 'Completed' };
    case 'missed':
      return { kind: 'report', ...(failure ?? { status: 'FailedDownload', reason: 'the bundle was not placed' }) };
  }
}

/** Combines the data of several reasons that one sentence lists. */
import type { Reason } from '../model/reasons.ts';
import { refusedDownloads } from './downloads.ts';
import { refusedVersions } from './refused-version.ts';

/**
 * Returns one reason with this message, which lists the messages of the reasons. It has the code of the first reason,
 * and the details of all reasons whose details are of the same kind. Returns undefined if there are no reasons.
 */
export function combined(reasons: readonly Reason[], message: string): Reason | undefined {
  const [first] = reasons;
  if (first === undefined) return undefined;
  const { details } = first;
  if (details === undefined) return { ...first, message };
  if ('versions' in details) {
    const all = reasons.flatMap((each) => refusedVersions(each) ?? []);
    return { ...first, message, details: { versions: [...new Set(all)] } };
  }
  if ('downloads' in details)
    return { ...first, message, details: { downloads: reasons.flatMap(refusedDownloads) } };
  return { ...first, message };
}

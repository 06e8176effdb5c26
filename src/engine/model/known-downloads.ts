/** The downloads that runs recorded, as far as another run can use them. */

import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { isKeptFileUrl } from '../../signal/kept-file.ts';
import { mayBePartOf } from '../../versions/release-parts.ts';
import { answerOf } from './asked.ts';
import type { Snapshot } from './snapshot.ts';

export type KnownDownload = NonNullable<NodeRolloutRun['downloads']>[number];

/**
 * Returns the downloads of these runs from which a file can be downloaded. A run whose hosts took the files that they
 * kept records an address from which nothing can be downloaded.
 */
export function knownDownloads(
  history: readonly Pick<NodeRolloutRun, 'downloads'>[],
): KnownDownload[] {
  return history
    .flatMap(({ downloads = [] }) => downloads)
    .filter(({ url }) => !isKeptFileUrl(url));
}

/** Returns true if the download is a file of this version. */
export function isDownloadOf({ version }: Pick<KnownDownload, 'version'>, wanted: string): boolean {
  return version === wanted || mayBePartOf(wanted, version);
}

/** Returns true if a recorded run downloaded the version for the platform. */
export function hasDownloadOf(
  { plan: { decisions } }: Pick<Snapshot, 'plan'>,
  version: string | undefined,
  platform: string | undefined,
): boolean {
  const history = answerOf(decisions)?.history;
  if (version === undefined || history === undefined) return false;
  return knownDownloads(history).some(
    (each) => each.platform === platform && isDownloadOf(each, version),
  );
}

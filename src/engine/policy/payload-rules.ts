/** Owns what is asked of downloads: a hash to verify them by, and a connection that nobody can write into. */

import { because, type Reason } from '../model/reasons.ts';
import type { Stage } from '../model/recorded.ts';
import type { RolloutPolicy } from './rollout-policy.ts';

/** Why the policy refuses the plan's downloads, one reason for each. */
export function payloadProblems(stages: readonly Stage[], policy: RolloutPolicy): Reason[] {
  const { name, requireSha256, requireHttps } = policy;
  return downloadsOf(stages).flatMap(({ where, hasHash, isPlain }) => [
    ...(requireSha256 && !hasHash
      ? [because('Unverified', `${where} has no sha256, and UpgradePolicy ${name} requires one`)]
      : []),
    ...(requireHttps && isPlain
      ? [because('Unverified', `${where} comes over plain http, and UpgradePolicy ${name} requires https`)]
      : []),
  ]);
}

/** What of a plan that may run is not verified, for people; undefined where all of it is. */
export function unverifiedDownloads(stages: readonly Stage[]): string | undefined {
  const unverified = downloadsOf(stages).filter(({ hasHash }) => !hasHash);
  if (unverified.length === 0) return undefined;
  const list = unverified.map(({ where, isPlain }) => (isPlain ? `${where} (over plain http)` : where));
  return `without a sha256, nodes run whatever they get as ${list.join(', ')}`;
}

interface Download {
  readonly where: string;
  readonly hasHash: boolean;
  readonly isPlain: boolean;
}

/** Each once: the stages of one command share them. */
function downloadsOf(stages: readonly Stage[]): Download[] {
  const downloads = stages.flatMap(({ command, payloads = {} }) =>
    Object.entries(payloads).map(([platform, { url, sha256 }]): [string, Download] => {
      const where = `the download of command ${command} for ${platform}`;
      return [where, { where, hasHash: sha256 !== undefined, isPlain: /^http:/i.test(url) }];
    }),
  );
  return [...new Map(downloads).values()];
}

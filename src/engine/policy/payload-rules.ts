/** The policy's rules for downloads: a sha256, and https. */
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

/** A warning about downloads without a sha256; undefined if all have one. */
export function unverifiedDownloads(stages: readonly Stage[]): string | undefined {
  const unverified = downloadsOf(stages).filter(({ hasHash }) => !hasHash);
  if (unverified.length === 0) return undefined;
  const list = unverified.map(({ where, isPlain }) => (isPlain ? `${where} (over plain http)` : where));
  return `no sha256, so nodes run these files unverified: ${list.join(', ')}`;
}

interface Download {
  readonly where: string;
  readonly hasHash: boolean;
  readonly isPlain: boolean;
}

/** Each download once: the stages of one command share them. */
function downloadsOf(stages: readonly Stage[]): Download[] {
  const downloads = stages.flatMap(({ command, payloads = {} }) =>
    Object.entries(payloads).map(([platform, { url, sha256 }]): [string, Download] => {
      const where = `the download of command ${command} for ${platform}`;
      return [where, { where, hasHash: sha256 !== undefined, isPlain: /^http:/i.test(url) }];
    }),
  );
  return [...new Map(downloads).values()];
}

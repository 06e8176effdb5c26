/** Says which downloads of a plan a policy refuses, and finds the refused download again in the recorded reason. */
import { because, type Reason } from '../model/reasons.ts';
import type { Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** Returns the reasons why the policy refuses the plan's downloads, one for each problem. */
export function payloadProblems(
  stages: readonly Stage[],
  policy: Pick<RolloutPolicy, 'name' | 'requireSha256' | 'requireHttps'>,
): Reason[] {
  const { name, requireSha256, requireHttps } = policy;
  return downloadsOf(stages).flatMap(({ where, hasHash, isPlain }) => {
    const noHash = because(
      'Unverified',
      `${where} has no sha256, and UpgradePolicy ${name} requires one; to allow this, set spec.payloads.requireSha256: false in the policy`,
    );
    const plain = because(
      'Unverified',
      `${where} comes over plain http, and UpgradePolicy ${name} requires https; to allow this, set spec.payloads.requireHttps: false in the policy`,
    );
    return [
      ...(requireSha256 && !hasHash ? [noHash] : []),
      ...(requireHttps && isPlain ? [plain] : []),
    ];
  });
}

/** Returns true if a download still has the problem that `sentence` names. It is a sentence of `payloadProblems`. */
export function isStillUnverified(stages: readonly Stage[], sentence: string): boolean {
  const strict = { requireSha256: true, requireHttps: true };
  // Only the first part of the sentence is compared, because the rest names the policy.
  const faults = payloadProblems(stages, strict).map((each) => each.message.split(', and ')[0]);
  return faults.some((fault) => fault !== undefined && sentence.includes(fault));
}

/** Returns a warning about downloads without a sha256; undefined if all downloads have one. */
export function unverifiedDownloads(stages: readonly Stage[]): string | undefined {
  const unverified = downloadsOf(stages).filter(({ hasHash }) => !hasHash);
  if (unverified.length === 0) return undefined;
  const list = unverified.map(({ where, isPlain }) =>
    isPlain ? `${where} (over plain http)` : where,
  );
  return `these files have no sha256, so nodes run them unverified: ${list.join(', ')}`;
}

/**
 * Returns each download of the stages once. The stages of one command share their downloads. Only plans with several
 * commands have a field with this name, so only their downloads are named by it.
 */
function downloadsOf(stages: readonly Stage[]) {
  const isOnly = new Set(stages.map(({ command }) => command)).size < 2;
  const downloads = stages.flatMap(({ command, payloads = {} }) =>
    Object.entries(payloads).map(([platform, { url, sha256 }]) => {
      const of = isOnly ? '' : ` of spec.commands[${command}]`;
      const where = `the download${of} for ${platform}`;
      return [
        where,
        { where, hasHash: sha256 !== undefined, isPlain: /^http:/i.test(url) },
      ] as const;
    }),
  );
  return [...new Map(downloads).values()];
}

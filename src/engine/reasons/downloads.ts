/** Says which downloads of a plan a policy refuses, and finds the refused download again in the recorded reason. */
import {
  because,
  type DownloadFault,
  type Reason,
  type RefusedDownload,
} from '../model/reasons.ts';
import type { Stage } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** What the sentences say of each fault. */
const FOUND = { noSha256: 'has no sha256', plainHttp: 'comes over plain http' } as const;

/** Returns the reasons why the policy refuses the plan's downloads, one for each problem. */
export function payloadProblems(
  stages: readonly Stage[],
  policy: Pick<RolloutPolicy, 'name' | 'requireSha256' | 'requireHttps'>,
): Reason[] {
  const { name, requireSha256, requireHttps } = policy;
  const wishes = {
    noSha256: `UpgradePolicy ${name} requires one; to allow this, set spec.payloads.requireSha256: false in the policy`,
    plainHttp: `UpgradePolicy ${name} requires https; to allow this, set spec.payloads.requireHttps: false in the policy`,
  };
  return faultsOf(stages)
    .filter(({ fault }) => (fault === 'noSha256' ? requireSha256 : requireHttps))
    .map((download) => {
      const { fault } = download;
      const message = `${nameOf(download)} ${FOUND[fault]}, and ${wishes[fault]}`;
      return because('Unverified', message, { downloads: [download] });
    });
}

/** Matches the beginning of each sentence of `payloadProblems`. */
const REFUSED =
  /the download(?: of spec\.commands\[(?<command>\d+)\])? for (?<platform>.+?) (?:has no sha256|(?<plain>comes over plain http)), and UpgradePolicy /g;

/** Returns the refused downloads that the recorded sentences of `payloadProblems` name. */
export function readRefusedDownloads(sentences: string): readonly RefusedDownload[] {
  return [...sentences.matchAll(REFUSED)].flatMap(({ groups = {} }) => {
    const { command, platform, plain } = groups;
    if (platform === undefined) return [];
    return {
      command: command === undefined ? undefined : Number(command),
      platform,
      fault: plain === undefined ? 'noSha256' : 'plainHttp',
    };
  });
}

/** Returns the downloads that the reason refuses; empty for a reason of another kind. */
export function refusedDownloads({ details }: Reason): readonly RefusedDownload[] {
  return details !== undefined && 'downloads' in details ? details.downloads : [];
}

/** Returns true if the plan still has one of the refused downloads, with the same fault. */
export function hasOneOf(refused: readonly RefusedDownload[], stages: readonly Stage[]): boolean {
  return faultsOf(stages).some((download) =>
    refused.some(
      ({ command, platform, fault }) =>
        command === download.command && platform === download.platform && fault === download.fault,
    ),
  );
}

/** Returns a warning about downloads without a sha256; undefined if all downloads have one. */
export function unverifiedDownloads(stages: readonly Stage[]): Reason | undefined {
  const unverified = downloadsOf(stages).filter(({ hasHash }) => !hasHash);
  if (unverified.length === 0) return undefined;
  const list = unverified.map((download) =>
    download.isPlain ? `${nameOf(download)} (over plain http)` : nameOf(download),
  );
  return because(
    'Unverified',
    `these files have no sha256, so nodes run them unverified: ${list.join(', ')}`,
    { downloads: faultsOf(stages).filter(({ fault }) => fault === 'noSha256') },
  );
}

function faultsOf(stages: readonly Stage[]): RefusedDownload[] {
  return downloadsOf(stages).flatMap(({ command, platform, hasHash, isPlain }) => {
    const faults: DownloadFault[] = [];
    if (!hasHash) faults.push('noSha256');
    if (isPlain) faults.push('plainHttp');
    return faults.map((fault) => ({ command, platform, fault }));
  });
}

function nameOf({ command, platform }: Pick<RefusedDownload, 'command' | 'platform'>): string {
  const of = command === undefined ? '' : ` of spec.commands[${command}]`;
  return `the download${of} for ${platform}`;
}

/**
 * Returns each download of the stages once. The stages of one command share their downloads. Only plans with several
 * commands have a field with this name, so only their downloads are named by it.
 */
function downloadsOf(stages: readonly Stage[]) {
  const isOnly = new Set(stages.map(({ command }) => command)).size < 2;
  const downloads = stages.flatMap((stage) => {
    const command = isOnly ? undefined : stage.command;
    return Object.entries(stage.payloads ?? {}).map(([platform, { url, sha256 }]) => {
      const found = { hasHash: sha256 !== undefined, isPlain: /^http:/i.test(url) };
      return [nameOf({ command, platform }), { command, platform, ...found }] as const;
    });
  });
  return [...new Map(downloads).values()];
}

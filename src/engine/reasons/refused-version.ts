/** Finds the version again that a version rule refused. Most sentences of these rules are in the folder versions/. */
import { because, type Reason } from '../model/reasons.ts';

/** Returns the sentence that stops a roll-back, because a worker that the plan does not list has a newer version. */
export function workerStaysNewer(
  worker: string,
  { installed, version }: { readonly installed: string; readonly version: string },
): Reason {
  const message = `${worker} reported that ${installed} is installed, which is newer than ${version}, and this plan does not roll the node back. Choose one: run refit rollback again, with --run and the run that installed ${installed}; or downgrade ${worker} by hand and remove its signal; or set \`versions.allow: [KubeletAhead]\` in the policy, if the node may keep the newer version`;
  return because('KubeletAhead', message, { versions: [version] });
}

/**
 * Match the refused version in each sentence that a version rule says. The other versions of these sentences are those
 * from which nodes come, or those of API servers and kubelets, and the plan may ask for them.
 */
const REFUSED = [
  / would go from \S+ (?:down|past .+?) to (?<version>\S+) \(rule /g,
  / would (?:have|go down to) a kubelet of (?<version>\S+), (?:newer than|too old for) the API server of /g,
  / would still have a kubelet of \S+ when the API server of .+? (?:has|goes back to) (?<version>\S+?)(?:: |, and )/g,
  / is installed, which is newer than (?<version>\S+), and this plan /g,
];

/** Matches a version as distributions write it: with a build after `+`, or after `-` where `+` is not allowed. */
const VERSION = /\bv?\d+\.\d+\.\d+(?:[+.-]?[0-9A-Za-z]+)*/g;

/**
 * Returns the versions that the recorded sentence refuses, each once. In a sentence of an earlier release, every version
 * counts as refused.
 */
export function readRefusedVersions(sentence: string): readonly string[] {
  const refused = REFUSED.flatMap((pattern) => [...sentence.matchAll(pattern)]).toSorted(
    (one, other) => one.index - other.index,
  );
  const versions = refused.flatMap(({ groups }) => groups?.['version'] ?? []);
  return [...new Set(versions.length > 0 ? versions : sentence.match(VERSION))];
}

/** Returns the versions that the reason refuses; undefined if no version rule gives this reason. */
export function refusedVersions({ details }: Reason): readonly string[] | undefined {
  return details !== undefined && 'versions' in details ? details.versions : undefined;
}

/** Finds the facts of a version of Kubernetes. */
import { parseVersion } from '../util/version.ts';
import { FACTS_33 } from './data/1.33.ts';
import { FACTS_34 } from './data/1.34.ts';
import { FACTS_35 } from './data/1.35.ts';
import { FACTS_36 } from './data/1.36.ts';
import { FACTS_37 } from './data/1.37.ts';
import { MAINTAINED_MINORS } from './data/by-hand.ts';
import { type MinorFacts, readFacts, type WrittenFacts } from './minor-facts.ts';

/** The facts of each known minor version of Kubernetes 1, from the oldest to the newest, without a gap. */
export const WRITTEN: readonly WrittenFacts[] = [FACTS_33, FACTS_34, FACTS_35, FACTS_36, FACTS_37];

export const OLDEST_KNOWN = Math.min(...WRITTEN.map(({ minor }) => minor));
/**
 * The newest minor version of Kubernetes 1 whose facts are known. kubeadm upgrades to later minor versions are refused,
 * unless an administrator allows them.
 */
export const NEWEST_KNOWN = Math.max(...WRITTEN.map(({ minor }) => minor));
/** The oldest minor version that upstream maintains. */
export const OLDEST_MAINTAINED = NEWEST_KNOWN - MAINTAINED_MINORS + 1;

const read = new Map<number, MinorFacts>();

/** Returns the facts of a minor version of Kubernetes 1; undefined if they are not known. */
export function factsOfMinor(minor: number): MinorFacts | undefined {
  const written = WRITTEN.find((each) => each.minor === minor);
  // The facts are read when they are first asked for, because most commands ask for none.
  return written && read.getOrInsertComputed(minor, () => readFacts(written));
}

/** Returns the facts of the minor version of this version; undefined if they are not known. */
export function factsOf(version: string): MinorFacts | undefined {
  const parsed = parseVersion(version);
  return parsed?.major === 1 ? factsOfMinor(parsed.minor) : undefined;
}

/**
 * Returns the facts by which a version is judged: its own, or those of the newest known minor version if the version is
 * newer than that. What Kubernetes has removed does not come back. Undefined if the version is older than all known
 * ones, or is no version.
 */
export function nearestFactsOf(version: string): MinorFacts | undefined {
  const { major = 0, minor = 0 } = parseVersion(version) ?? {};
  return factsOfMinor(major > 1 ? NEWEST_KNOWN : Math.min(minor, NEWEST_KNOWN));
}

/**
 * Returns the first minor version up to `until` that lacks what an earlier one had: `has` says whether a minor version
 * has it. Undefined if `until` has it, or if no earlier minor version had it.
 */
export function lostSince(
  until: MinorFacts,
  has: (facts: MinorFacts) => boolean,
): number | undefined {
  if (has(until)) return undefined;
  for (let minor = until.minor - 1; minor >= OLDEST_KNOWN; minor--) {
    const facts = factsOfMinor(minor);
    if (facts !== undefined && has(facts)) return minor + 1;
  }
  return undefined;
}

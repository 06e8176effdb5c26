/** Says on which release of Kubernetes the tests run, and why a test cannot run there. */
import { parseVersion } from '../../src/util/version.ts';
import { KUBERNETES_VERSION } from '../../tools/controlplane/components.ts';
import { chosenRelease } from '../../tools/controlplane/releases.ts';

/** True if no other release is chosen. */
export const ON_USUAL_RELEASE = KUBERNETES_VERSION === chosenRelease({}).kubernetes;

/** The reason for which a test about the API server in memory is skipped; undefined on the release that it imitates. */
export const WHY_ONLY_USUAL = ON_USUAL_RELEASE
  ? undefined
  : `the API server in memory imitates ${chosenRelease({}).kubernetes}, and this is ${KUBERNETES_VERSION}`;

/** Returns the reason for which a test is skipped; undefined if Kubernetes still has the feature. */
export function whyNotUntil(minor: number, feature: string): string | undefined {
  if ((parseVersion(KUBERNETES_VERSION)?.minor ?? 0) <= minor) return undefined;
  return `Kubernetes ${feature} until v1.${minor}, and this is ${KUBERNETES_VERSION}`;
}

/**
 * Returns the reason for which a test is skipped; undefined if Kubernetes has the feature. `feature` completes the sentence
 * "Kubernetes … since v1.NN".
 */
export function whyNotSince(minor: number, feature: string): string | undefined {
  if ((parseVersion(KUBERNETES_VERSION)?.minor ?? 0) >= minor) return undefined;
  return `Kubernetes ${feature} since v1.${minor}, and this is ${KUBERNETES_VERSION}`;
}

/** The feature gate WatchList was on in v1.32 too, but not in v1.33. */
export const WHY_NO_WATCH_LISTS = whyNotSince(34, 'sends its state at the start of a watch');

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
  if (minorOf(KUBERNETES_VERSION) <= minor) return undefined;
  return `Kubernetes ${feature} until v1.${minor}, and this is ${KUBERNETES_VERSION}`;
}

/**
 * Returns the reason for which a test is skipped; undefined if Kubernetes has the feature. `feature` completes the sentence
 * "Kubernetes … since v1.NN".
 */
export function whyNotSince(minor: number, feature: string): string | undefined {
  if (minorOf(KUBERNETES_VERSION) >= minor) return undefined;
  return `Kubernetes ${feature} since v1.${minor}, and this is ${KUBERNETES_VERSION}`;
}

/**
 * The reason for which a test is skipped that shows that a kubelet reads no other Node. The feature gate
 * AuthorizeNodeWithSelectors is on by default since v1.32.
 */
export const WHY_READS_OTHER_NODES = whyNotSince(32, 'lets a kubelet read only its own Node');

/** The feature gate WatchList was on in v1.32 too, but not in v1.33. */
export const WHY_NO_WATCH_LISTS = whyNotSince(34, 'sends its state at the start of a watch');

/** The reason for which a test is skipped whose Job gets the condition SuccessCriteriaMet. */
export const WHY_NO_SUCCESS_CRITERIA = whyNotSince(
  31,
  'has the condition SuccessCriteriaMet in every Job',
);

/** The reason for which a test is skipped that installs kubelets of the usual release; undefined if the API server is not older. */
export const WHY_KUBELETS_TOO_NEW = unlessOlder(
  (usual) => `the test installs kubelets of ${usual}, which must not be newer than the API server`,
);

/** The reason for which a test is skipped whose recording an older API server does not repeat. */
export const WHY_NOT_AS_RECORDED = unlessOlder(
  (usual) => `the recording is of an API server of ${usual}`,
);

function unlessOlder(why: (usual: string) => string): string | undefined {
  const usual = chosenRelease({}).kubernetes;
  if (minorOf(KUBERNETES_VERSION) >= minorOf(usual)) return undefined;
  return `${why(usual)}, and this is ${KUBERNETES_VERSION}`;
}

function minorOf(version: string): number {
  return parseVersion(version)?.minor ?? 0;
}

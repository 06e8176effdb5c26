/**
 * Decides which version of an object is the newest: a watch lags behind our own writes, and the answer to a write may
 * be older than what the watch has shown.
 */
import { compareResourceVersions, type KubeObject } from '../../kube/resources.ts';
import type { Clock } from '../../util/clock.ts';

/**
 * Milliseconds after a version was seen for which older versions are ignored. No watch lags and no answer takes so long. The time is
 * limited, because a cluster that is restored from a backup has lower resourceVersions.
 */
const ECHO_MS = 60_000;

/** The newest version that the watch, or an answer to our own writes, has shown. */
interface Mark {
  readonly resourceVersion: string;
  /** When the version was seen, in monotonic milliseconds. */
  readonly at: number;
}

const NEVER: Mark = { resourceVersion: '0', at: Number.NEGATIVE_INFINITY };

export interface NewestVersion {
  /**
   * Remembers the answer to a write. Returns false if the watch has shown that version or a newer one within the last
   * minute.
   */
  answered(object: KubeObject): boolean;
  /**
   * Remembers an event of the watch. Returns false if our own writes got that version or a newer one within the last
   * minute.
   */
  watched(object: KubeObject): boolean;
  /**
   * Returns false if the watch or our own writes got that version or a newer one within the last minute. Remembers
   * nothing.
   */
  isNewest(object: KubeObject): boolean;
}

/** Returns a memory that has not seen any version yet. */
export function newestVersion(clock: Clock): NewestVersion {
  let ofWrites = NEVER;
  let ofWatch = NEVER;
  const markOf = ({ metadata }: KubeObject): Mark => ({
    resourceVersion: metadata.resourceVersion ?? '0',
    at: clock.monotonic(),
  });
  const isNewerThan = ({ metadata }: KubeObject, { resourceVersion, at }: Mark): boolean => {
    const isForgotten = clock.monotonic() - at >= ECHO_MS;
    return (
      isForgotten || compareResourceVersions(metadata.resourceVersion ?? '0', resourceVersion) > 0
    );
  };
  return {
    answered(object) {
      ofWrites = markOf(object);
      return isNewerThan(object, ofWatch);
    },
    watched(object) {
      ofWatch = markOf(object);
      return isNewerThan(object, ofWrites);
    },
    isNewest: (object) => isNewerThan(object, ofWrites) && isNewerThan(object, ofWatch),
  };
}

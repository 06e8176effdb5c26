/**
 * Decides which version of an object is the newest. A watch reports our own writes late, and the answer to a write may
 * be older than a version that the watch has already reported.
 */
import { compareResourceVersions, type KubeObject } from '../../kube/resources.ts';
import type { Clock } from '../../util/clock.ts';

/**
 * The milliseconds for which older versions are ignored after a version was observed. No watch and no answer is delayed
 * for longer than this. The time is limited, because a cluster that is restored from a backup has lower
 * resourceVersions.
 */
const ECHO_MS = 60_000;

/** The newest version from one source: either from the watch, or from the answers to our own writes. */
interface Mark {
  readonly resourceVersion: string;
  /** The time at which the version was observed, in monotonic milliseconds. */
  readonly at: number;
}

const NEVER: Mark = { resourceVersion: '0', at: Number.NEGATIVE_INFINITY };

export interface NewestVersion {
  /**
   * Remembers the answer to a write. Returns false if the watch has reported this version or a newer version within the
   * last minute.
   */
  answered(object: KubeObject): boolean;
  /**
   * Remembers an event of the watch. Returns false if an answer to one of our own writes contained this version or a
   * newer version within the last minute.
   */
  watched(object: KubeObject): boolean;
  /**
   * Returns false if the watch, or an answer to one of our own writes, contained this version or a newer version within
   * the last minute. Remembers nothing.
   */
  isNewest(object: KubeObject): boolean;
}

/** Returns a memory that does not contain any version yet. */
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

/**
 * The differences between releases of k0s that another component could notice. The version of the running k0s
 * determines which behaviour applies.
 */
import { compareVersions, parseVersion } from '../../../src/util/version.ts';

export interface Quirks {
  /** True if the leader cordons all nodes, and announces that it does so. Otherwise each node cordons itself. */
  readonly centralCordoning: boolean;
  /** True if the process remembers which restart it ordered, and orders no restart twice. */
  readonly restartTracker: boolean;
  /** True if a hard link puts the binary in place. Then the step can be repeated after a failed write of the status. */
  readonly replayableApply: boolean;
  /** True if k0s handles the signal for a bundle on the Node of a controller that is also a worker. */
  readonly airgapOnControllers: boolean;
  /**
   * The state of the plan if a target is not ready when its signal is due. If absent, the leader checks the target
   * again later.
   */
  readonly whenNotReady?: 'InconsistentTargets';
  /** The state of the plan if the object of a target is gone when its signal is due. */
  readonly whenGone: 'IncompleteTargets' | 'MissingSignalNode';
}

/** For each different behaviour, one version of k0s that can be in the same cluster as Refit. */
export const VARIANTS = {
  /** As recorded. */
  'v1.36.3': 'v1.36.3+k0s.2',
  '>=1.35': 'v1.35.4+k0s.0',
  '<=1.34': 'v1.34.10+k0s.0',
} as const;

export type Variant = keyof typeof VARIANTS;

/**
 * Returns the behaviour of a release. A text that is not a version, and also `v0.0.0`, counts as the newest recorded
 * release.
 */
export function quirksOf(version: string): Quirks {
  const parsed = parseVersion(version);
  const own = parsed === undefined || parsed.major === 0 ? read(VARIANTS['v1.36.3']) : parsed;
  const isSince = (release: string): boolean => compareVersions(own, read(release)) >= 0;
  const isModern = isSince('v1.35.0');
  return {
    centralCordoning: isModern,
    restartTracker: isSince('v1.36.3+k0s.1'),
    replayableApply: isSince('v1.37.0'),
    airgapOnControllers:
      !isModern || isSince('v1.36.1') || (isSince('v1.35.4') && !isSince('v1.36.0')),
    ...(isModern ? {} : { whenNotReady: 'InconsistentTargets' as const }),
    whenGone: isModern ? 'IncompleteTargets' : 'MissingSignalNode',
  };
}

function read(version: string): NonNullable<ReturnType<typeof parseVersion>> {
  const parsed = parseVersion(version);
  if (parsed === undefined) throw new Error(`${version} is not a version`);
  return parsed;
}

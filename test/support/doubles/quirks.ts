/** What differs between releases of k0s where another component could notice, by the version that runs. */
import { compareVersions, parseVersion } from '../../../src/util/version.ts';

export interface Quirks {
  /** Nodes let the leader cordon them, and the leader says that it does. */
  readonly centralCordoning: boolean;
  /** The process remembers which restart it ordered, and orders none twice. */
  readonly restartTracker: boolean;
  /** The binary is put in place by a hard link, so that the step can be taken again after a failed status write. */
  readonly replayableApply: boolean;
  /** Somebody handles a bundle's signal on the Node of a controller that is a worker too. */
  readonly airgapOnControllers: boolean;
  /** Plan state when a target is not ready at its turn; it is asked again where absent. */
  readonly whenNotReady?: 'InconsistentTargets';
  /** Plan state when the object of a target is gone at its turn. */
  readonly whenGone: 'IncompleteTargets' | 'MissingSignalNode';
}

/** One version of each behaviour that can meet ours in a cluster. */
export const VARIANTS = {
  /** As recorded. */
  'v1.36.3': 'v1.36.3+k0s.2',
  '>=1.35': 'v1.35.4+k0s.0',
  '<=1.34': 'v1.34.10+k0s.0',
} as const;

export type Variant = keyof typeof VARIANTS;

/** A version that is none (`v0.0.0`, too) counts as the newest one that was recorded. */
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

/** Finds the version of Kubernetes that a plan brings. */
import { compareVersionTexts, parseVersion } from '../../util/version.ts';
import type { Rollout } from './rollout.ts';

/** Returns the newest version that kubelets report once the plan is done; undefined if no stage has a version that can be read. */
export function newestVersionOf({ stages }: Pick<Rollout, 'stages'>): string | undefined {
  return newestOf(
    stages
      .map(({ kubernetesVersion, version }) => kubernetesVersion ?? version)
      .filter((version) => parseVersion(version) !== undefined),
  );
}

/** Returns the newest of these versions, all of which can be read; undefined if there are none. */
export function newestOf(versions: readonly string[]): string | undefined {
  return versions.toSorted((one, other) => compareVersionTexts(other, one)).at(0);
}

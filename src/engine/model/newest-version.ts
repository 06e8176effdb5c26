/** Finds the version of Kubernetes that a plan brings. */
import { compareVersionTexts, parseVersion } from '../../util/version.ts';
import type { Rollout } from './rollout.ts';

/** Returns the newest version that kubelets report once the plan is done; undefined if no stage has a version that can be read. */
export function newestVersionOf({ stages }: Pick<Rollout, 'stages'>): string | undefined {
  const [newest] = stages
    .map(({ kubernetesVersion, version }) => kubernetesVersion ?? version)
    .filter((version) => parseVersion(version) !== undefined)
    .toSorted((one, other) => compareVersionTexts(other, one) || 0);
  return newest;
}

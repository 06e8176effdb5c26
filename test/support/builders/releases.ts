/** Releases whose kubelets report only a part of the version, for tests. */
import { kubernetesPartOf } from '../../../src/versions/release-parts.ts';

/** Returns a release of k0s, such as `v1.36.1+k0s.0`. */
export function buildRelease(version: string, build = 0): string {
  return `${version}+k0s.${build}`;
}

/** Returns what the kubelet of the release reports. */
export function reportedPartOf(release: string): string {
  return kubernetesPartOf(release);
}

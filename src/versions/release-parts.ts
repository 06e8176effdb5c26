/** Knows what each part of a k0s release calls itself: k0s says `v1.36.3+k0s.2`, its kubelet and API server `v1.36.3+k0s`. */
import { compareVersions, parseVersion, type Version } from '../util/version.ts';

/** What kubelet and API server of a release report; the text itself for other distributions. */
export function kubernetesPartOf(release: string): string {
  return release.replace(/(\+k0s)\.\d+$/, '$1');
}

/** False if a kubelet or API server that reports `found` is surely of another release. */
export function mayBePartOf(found: string, release: string): boolean {
  return found === release || found === kubernetesPartOf(release);
}

/** Both without their build suffixes if one says less of it than the other, as a kubelet does beside its release. */
export function equallyPrecise(a: Version, b: Version): [Version, Version] {
  const saysLess = (one: Version, other: Version): boolean =>
    one.build === '' || other.build.startsWith(`${one.build}.`);
  if (!saysLess(a, b) && !saysLess(b, a)) return [a, b];
  const plain = (version: Version): Version => ({ ...version, build: '' });
  return [plain(a), plain(b)];
}

/** True if a kubelet or API server that reports `found` is surely older than `release`; false if a version cannot be read. */
export function isOlder(found: string | undefined, release: string): boolean {
  const reported = parseVersion(found);
  const wanted = parseVersion(release);
  return (
    reported !== undefined &&
    wanted !== undefined &&
    compareVersions(...equallyPrecise(reported, wanted)) < 0
  );
}

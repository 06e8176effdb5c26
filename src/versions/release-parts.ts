/**
 * Knows which version each part of a k0s release reports. For example, k0s reports `v1.36.3+k0s.2`, and the kubelet and
 * the API server of that release report `v1.36.3+k0s`.
 */
import {
  compareVersions,
  compareVersionTexts,
  parseVersion,
  type Version,
} from '../util/version.ts';

/** Returns the version that the kubelet and the API server of a release report, also of a build such as `v1.36.3+k0s.0-ec.1`. For other distributions it is the release itself. */
export function kubernetesPartOf(release: string): string {
  return release.replace(/(\+k0s)\..+$/, '$1');
}

/** Returns true if the version is one that only the kubelet and the API server of k0s report: it names no build, so no Plan can ask for it. */
export function isKubernetesPart(version: string): boolean {
  return version.endsWith('+k0s');
}

/** Returns false if a kubelet or API server that reports `found` is surely of another release. */
export function mayBePartOf(found: string, release: string): boolean {
  return found === release || found === kubernetesPartOf(release);
}

/**
 * Returns the two versions in a form that can be compared. It removes both build suffixes if one of them is less
 * precise. For example, the suffix that a kubelet reports is less precise than the suffix of its release.
 */
export function equallyPrecise(a: Version, b: Version): [Version, Version] {
  const saysLess = (one: Version, other: Version): boolean =>
    one.build === '' || other.build.startsWith(`${one.build}.`);
  if (!saysLess(a, b) && !saysLess(b, a)) return [a, b];
  const plain = (version: Version): Version => ({ ...version, build: '' });
  return [plain(a), plain(b)];
}

/**
 * Returns true if a kubelet or API server that reports `found` is surely older than `release`. It
 * returns false if a version cannot be read.
 */
export function isOlder(found: string | undefined, release: string): boolean {
  const reported = parseVersion(found);
  const wanted = parseVersion(release);
  return (
    reported !== undefined &&
    wanted !== undefined &&
    compareVersions(...equallyPrecise(reported, wanted)) < 0
  );
}

/**
 * Returns true if both texts name the same version. A missing `v` at the start of one text makes no difference. A text
 * that cannot be parsed is equal only to an identical text.
 */
export function isSameVersion(a: string, b: string): boolean {
  return a === b || compareVersionTexts(a, b) === 0;
}

/**
 * Returns false if the two texts certainly name different versions. It returns true if one of them cannot be parsed, or
 * if one of them is less precise.
 */
export function mayBeSameVersion(a: string, b: string): boolean {
  const left = parseVersion(a);
  const right = parseVersion(b);
  return !left || !right || compareVersions(...equallyPrecise(left, right)) === 0;
}

/**
 * Parses and compares versions in the forms that Kubernetes distributions use. Unlike semver, the comparison includes
 * build suffixes.
 */

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** The pre-release, such as `rc.1`. It is empty for a release. */
  readonly pre: string;
  /**
   * The build suffix without its sign, such as `k0s.2` or `eks-113cf36`. It is empty if the version has no build
   * suffix.
   */
  readonly build: string;
}

/**
 * Matches a build suffix after a dash. Cloud providers use this form. The tags of images of k3s, RKE2 and k0s also have
 * a dash, because a tag cannot contain a plus sign. A pre-release may come before the suffix, as in `v1.33.1-rc1-k3s1`.
 */
const BUILD_AFTER_DASH = /^(?:(.+?)-)?((?:eks|gke)\b.*|(?:k3s|rke2r)\d.*|k0s\b.*)$/;

const PATTERN = /^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$/;

/**
 * Returns the parts of a version: three numbers, optionally with `v`, pre-release and build suffix.
 * Undefined for any other text.
 */
export function parseVersion(text = ''): Version | undefined {
  const match = PATTERN.exec(text);
  if (!match) return undefined;
  const [, major, minor, patch, afterMinus = '', build = ''] = match;
  const numbers = { major: Number(major), minor: Number(minor), patch: Number(patch) };
  const [, pre = '', dashed] = BUILD_AFTER_DASH.exec(afterMinus) ?? [];
  if (dashed === undefined) return { ...numbers, pre: afterMinus, build };
  return { ...numbers, pre, build: [dashed, build].filter((part) => part !== '').join('+') };
}

/** Returns the version with one `v` before it. */
export function withV(text: string): string {
  return `v${text.replace(/^v/, '')}`;
}

/**
 * Returns the version of k3s, RKE2 or k0s with the plus sign before its build, in place of the dash
 * of an image tag. Any other text is returned as it is.
 */
export function withPlusSign(text: string): string {
  return text.replace(/-(?=(?:k3s|rke2r)\d|k0s(?:\.|$))/, '+');
}

/**
 * Returns a negative number if `a` comes before `b`. It compares the numbers, then sorts a
 * pre-release before its release, then compares the build suffixes.
 */
export function compareVersions(a: Version, b: Version): number {
  return (
    a.major - b.major ||
    a.minor - b.minor ||
    a.patch - b.patch ||
    Number(a.pre === '') - Number(b.pre === '') ||
    compareNaturally(a.pre, b.pre) ||
    compareNaturally(a.build, b.build)
  );
}

/**
 * Compares two texts like `compareVersions`. It returns NaN if one of the texts is not a version. A comparison of NaN
 * with `<`, `===` or `>=` is always false.
 */
export function compareVersionTexts(a?: string, b?: string): number {
  const left = parseVersion(a);
  const right = parseVersion(b);
  return left && right ? compareVersions(left, right) : Number.NaN;
}

function compareNaturally(a: string, b: string): number {
  const left = padded(a);
  const right = padded(b);
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/**
 * Pads the numbers with zeros, so that the order of the texts is the order of the numbers: `k0s.9` comes before
 * `k0s.10`.
 */
function padded(text: string): string {
  return text.replaceAll(/\d+/g, (digits) => digits.padStart(20, '0'));
}

/** Returns true if both versions belong to one minor version. */
export function isSameMinor(a: Version, b: Version): boolean {
  return a.major === b.major && a.minor === b.minor;
}

/** Returns true if `a` has a newer minor version than `b`, or a newer major version. */
export function isNewerMinor(a: Version, b: Version): boolean {
  return a.major > b.major || (a.major === b.major && a.minor > b.minor);
}

/**
 * Returns the minor versions that an upgrade would skip, such as `1.35`. It returns at most 9,
 * because a user may name a version that skips millions.
 */
export function minorsBetween({ major, minor }: Version, to: Version): string[] {
  return Array.from(
    { length: Math.min(to.minor - minor - 1, 9) },
    (_, index) => `${major}.${minor + 1 + index}`,
  );
}

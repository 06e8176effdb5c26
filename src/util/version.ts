/** Versions as Kubernetes distributions write them. Unlike in semver, build suffixes count for the order. */

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** Pre-release (`rc.1`); empty for a release. */
  readonly pre: string;
  /** Build suffix without its sign (`k0s.2`, `eks-113cf36`), or empty. */
  readonly build: string;
}

/**
 * A build that stands after a dash: cloud providers write theirs so, and tags of images, which have no plus sign, those of k3s,
 * RKE2 and k0s. A pre-release may come before it, as in `v1.33.1-rc1-k3s1`.
 */
const BUILD_AFTER_DASH = /^(?:(.+?)-)?((?:eks|gke)\b.*|(?:k3s|rke2r)\d.*|k0s\b.*)$/;

const PATTERN = /^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$/;

/** Three numbers, optionally with `v`, pre-release and build suffix; undefined for any other text, and for none. */
export function parseVersion(text = ''): Version | undefined {
  const match = PATTERN.exec(text);
  if (!match) return undefined;
  const [, major, minor, patch, afterMinus = '', build = ''] = match;
  const numbers = { major: Number(major), minor: Number(minor), patch: Number(patch) };
  const [, pre = '', dashed] = BUILD_AFTER_DASH.exec(afterMinus) ?? [];
  if (dashed === undefined) return { ...numbers, pre: afterMinus, build };
  return { ...numbers, pre, build: [dashed, build].filter((part) => part !== '').join('+') };
}

/** With the plus sign before the build of k3s, RKE2 or k0s, where a tag of an image has a dash; any other text as it is. */
export function withPlusSign(text: string): string {
  return text.replace(/-(?=(?:k3s|rke2r)\d|k0s(?:\.|$))/, '+');
}

/** Negative when `a` comes before `b`: by numbers, then pre-release before release, then the build suffix. */
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

/** The same for texts. NaN if one is no version: then `<`, `===` and `>=` are all false. */
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

/** Puts texts into the order of their numbers: `k0s.9` comes before `k0s.10`. */
function padded(text: string): string {
  return text.replaceAll(/\d+/g, (digits) => digits.padStart(20, '0'));
}

export function isNewerMinor(a: Version, b: Version): boolean {
  return a.major > b.major || (a.major === b.major && a.minor > b.minor);
}

/** The minor versions that an upgrade would skip, such as `1.35`. The first ones: anybody may name a version with millions. */
export function minorsBetween({ major, minor }: Version, to: Version): string[] {
  return Array.from(
    { length: Math.min(to.minor - minor - 1, 9) },
    (_, index) => `${major}.${minor + 1 + index}`,
  );
}

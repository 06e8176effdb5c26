/**
 * Reads the pins of a policy: the version to which a node is pinned, and whether a stage would change the node to
 * another version.
 */
import { matchesLabels } from '../../kube/selectors.ts';
import { compareVersionTexts, parseVersion, withPlusSign } from '../../util/version.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Stage, Target } from '../model/rollout.ts';
import type { Pin, RolloutPolicy } from '../policy/rollout-policy.ts';

/**
 * A pin of the policy that forbids the version of a stage. `index` is the index of the pin in the list of the policy,
 * starting with 0.
 */
export interface Pinned extends Pick<Pin, 'version'> {
  readonly index: number;
  /** The index of another pin that selects the same node with a different version; undefined if the pins agree. */
  readonly conflict?: number | undefined;
}

/**
 * Returns the pin that forbids the version of the stage for the target, or a pin that contradicts another pin;
 * undefined if there is no such pin.
 */
export function pinAgainst(
  { pins = [] }: Pick<RolloutPolicy, 'pins'>,
  { version, keepsVersion }: Pick<Stage, 'version' | 'keepsVersion'>,
  { labels }: Partial<Pick<TargetFacts, 'labels'>>,
): Pinned | undefined {
  // A stage with `keepsVersion` only prepares nodes, and their versions stay as they are.
  if (pins.length === 0 || keepsVersion === true) return undefined;
  const own = pins.flatMap((pin, index) =>
    matchesLabels(pin.selector, labels) ? { index, version: pin.version } : [],
  );
  const [first] = own;
  if (first === undefined) return undefined;
  const conflict = own.find((pin) => !isSameVersion(pin.version, first.version))?.index;
  if (conflict !== undefined) return { ...first, conflict };
  return own.find((pin) => !allows(pin.version, version));
}

/** A pin without a build suffix allows every build of its version. */
function allows(pin: string, version: string): boolean {
  if (isSameVersion(pin, version)) return true;
  const pinned = parseVersion(pin);
  const { build, ...wanted } = parseVersion(withPlusSign(version)) ?? { build: '' };
  return (
    pinned !== undefined &&
    pinned.build === '' &&
    build !== '' &&
    JSON.stringify({ ...pinned, build: undefined }) === JSON.stringify(wanted)
  );
}

/** Returns true if both texts name the same version. The tag of an image has a dash in place of the plus sign. */
export function isSameVersion(a: string, b: string): boolean {
  return a === b || compareVersionTexts(withPlusSign(a), withPlusSign(b)) === 0;
}

/** Returns why a pin keeps the target from the version of its stage; undefined if none does, or if pins contradict each other. */
export function pinOf(
  policy: RolloutPolicy,
  stage: Stage,
  { name }: Pick<Target, 'name'>,
  facts: TargetFacts,
): Reason | undefined {
  const pin = pinAgainst(policy, stage, facts);
  return pin === undefined || pin.conflict !== undefined
    ? undefined
    : because('Pinned', pinnedSentence(name, pin, stage, policy));
}

/** Says to which version a pin of the policy pins the node. */
export function pinnedSentence(
  node: string,
  pin: Pinned,
  stage: Pick<Stage, 'version'>,
  policy: Pick<RolloutPolicy, 'name'>,
): string {
  return `${node} is pinned to ${pin.version} by spec.versions.pin[${pin.index}] of UpgradePolicy ${policy.name}, and the plan asks for ${stage.version}`;
}

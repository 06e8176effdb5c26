/** Warns about plans that would never start because of another object of the same files: a policy or another plan. */
import type { UpgradePolicy } from '../api/refit/upgrade-policy.ts';
import { coveringPolicies } from '../engine/policy/choose-policy.ts';
import { readPolicy } from '../engine/policy/read-policy.ts';
import type { KubeObject } from '../kube/resources.ts';
import type { ObjectFile } from './contract/file-kind.ts';

/** A valid plan of the files. */
export interface PlacedPlan {
  readonly place: string;
  readonly dialect: string;
  readonly file: ObjectFile;
  readonly object: KubeObject;
}

/**
 * Returns a line for each warning, with the place of its plan. Only the most specific policy that covers a plan is
 * asked, because only this policy applies. `policies` are valid.
 */
export function warningsUnderPolicies(
  plans: readonly PlacedPlan[],
  policies: readonly UpgradePolicy[],
): string[] {
  return plans.flatMap(({ place, dialect, file, object }) => {
    const { name, namespace } = object.metadata;
    const [first] = coveringPolicies(policies, { dialect, name, namespace });
    if (first === undefined) return [];
    const found = file.refusedBy?.(object, readPolicy(first.policy)) ?? [];
    return found.map((warning) => `${place}: warning: ${warning}`);
  });
}

/** Returns a line for each warning about a plan that only all plans of the files together show, with its place. */
export function warningsAmong(plans: readonly PlacedPlan[]): string[] {
  return plans.flatMap(({ place, file, object }) => {
    const ofKind = plans.filter((other) => other.file === file).map((other) => other.object);
    const found = file.amongAll?.(object, ofKind) ?? [];
    return found.map((warning) => `${place}: warning: ${warning}`);
  });
}

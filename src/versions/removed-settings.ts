/**
 * Finds settings that a minor version of Kubernetes no longer has, and values that it no longer accepts. A component with
 * such a setting does not start.
 */
import { parseVersion } from '../util/version.ts';
import {
  EARLY_FLAGS,
  EARLY_GATES,
  EARLY_KUBEADM_GATES,
  type EarlyRemoval,
  REMOVAL_NOTES,
} from './data/by-hand.ts';
import { lostSince, nearestFactsOf } from './facts.ts';
import type { Component, FeatureGate, MinorFacts } from './minor-facts.ts';

export interface Removal {
  readonly name: string;
  /** The first minor version of v1 without the setting. */
  readonly since: number;
  /** The change that removed it. */
  readonly source: string;
  /** A file from which kubeadm, or Refit, removes the setting during an upgrade. */
  readonly cleanedIn?: string;
}

/** Returns the flag of the component with this name, if `version` does not have it any more. */
export function removedFlag(
  component: Component,
  name: string,
  version: string,
): Removal | undefined {
  const has = (facts: MinorFacts): boolean => facts.hasFlag(component, name);
  return removal(name, version, has, EARLY_FLAGS[component] ?? []);
}

/** Returns the feature gate with this name, if the component of `version` does not have it any more. */
export function removedGate(
  component: Component,
  name: string,
  version: string,
): Removal | undefined {
  const has = (facts: MinorFacts): boolean => facts.gateOf(component, name) !== undefined;
  return removal(name, version, has, EARLY_GATES);
}

/** Returns the feature gate of kubeadm itself with this name, if kubeadm of `version` does not have it any more. */
export function removedKubeadmGate(name: string, version: string): Removal | undefined {
  return removal(name, version, (facts) => facts.kubeadmGates.has(name), EARLY_KUBEADM_GATES);
}

/** A feature gate whose value cannot be changed any more. */
export interface Lock {
  /** The first known minor version of v1 in which the gate is locked. */
  readonly since: number;
  readonly value: boolean;
  /** True if an earlier known minor version has the gate unlocked, so that `since` is the change. */
  readonly isChange: boolean;
}

/** Returns the lock of the gate, if the component of `version` refuses this value because of it. */
export function lockedGate(
  component: Component,
  { name, value }: { readonly name: string; readonly value: boolean },
  version: string,
): Lock | undefined {
  const target = nearestFactsOf(version);
  const gate = target?.gateOf(component, name);
  if (target === undefined || gate === undefined || !refuses(gate, value)) return undefined;
  const accepts = (facts: MinorFacts): boolean => {
    const earlier = facts.gateOf(component, name);
    return earlier !== undefined && !refuses(earlier, value);
  };
  const since = lostSince(target, accepts);
  return { since: since ?? target.minor, value: gate.default, isChange: since !== undefined };
}

function refuses(gate: FeatureGate, value: boolean): boolean {
  return gate.locked && gate.default !== value;
}

function removal(
  name: string,
  version: string,
  has: (facts: MinorFacts) => boolean,
  early: readonly EarlyRemoval[],
): Removal | undefined {
  const plain = name.replaceAll('_', '-');
  const known = early.find((each) => each.name === name || each.name === plain);
  const { major = 0, minor = 0 } = parseVersion(version) ?? {};
  if (known !== undefined && (major > 1 || minor >= known.since)) {
    const { since, sources } = known;
    return { name, since, source: sources[0] ?? changelogOf(since) };
  }
  const target = nearestFactsOf(version);
  const since = target && lostSince(target, has);
  if (since === undefined) return undefined;
  const { sources: [source = changelogOf(since)] = [], cleanedIn } =
    REMOVAL_NOTES.find((each) => each.name === plain || each.name === name) ?? {};
  return { name, since, source, ...(cleanedIn !== undefined && { cleanedIn }) };
}

function changelogOf(minor: number): string {
  return `https://github.com/kubernetes/kubernetes/blob/master/CHANGELOG/CHANGELOG-1.${minor}.md`;
}

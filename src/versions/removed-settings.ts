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

/** The name of a flag or a feature gate, and the component that has it. */
export interface SettingName {
  /** `gate` is a feature gate of the component, and `flag` is a flag of it. */
  readonly kind: 'gate' | 'flag';
  /** `kubeadm` has feature gates of its own, which are no feature gates of components. */
  readonly component: Component | 'kubeadm';
  readonly name: string;
}

/** Returns true if the component of this minor version has the setting. */
function has(facts: MinorFacts, { kind, component, name }: SettingName): boolean {
  if (component === 'kubeadm') return facts.kubeadmGates.has(name);
  return kind === 'flag'
    ? facts.hasFlag(component, name)
    : facts.gateOf(component, name) !== undefined;
}

function earlyRemovals({ kind, component }: SettingName): readonly EarlyRemoval[] {
  if (component === 'kubeadm') return EARLY_KUBEADM_GATES;
  return kind === 'flag' ? (EARLY_FLAGS[component] ?? []) : EARLY_GATES;
}

/**
 * Returns true if some known version up to that of the target has the setting. If none has it, the component is another
 * build of Kubernetes, and nothing is known about its next version.
 */
export function isKnown(setting: SettingName, version: string): boolean {
  const target = nearestFactsOf(version);
  const isIn = (facts: MinorFacts): boolean => has(facts, setting);
  return target === undefined || isIn(target) || lostSince(target, isIn) !== undefined;
}

/** Returns the removal of the setting, if the component of `version` does not have it any more. */
export function removalOf(setting: SettingName, version: string): Removal | undefined {
  const { name } = setting;
  const plain = name.replaceAll('_', '-');
  const isNamed = (each: { readonly name: string }): boolean =>
    each.name === name || each.name === plain;
  const known = earlyRemovals(setting).find(isNamed);
  const { major = 0, minor = 0 } = parseVersion(version) ?? {};
  if (known !== undefined && (major > 1 || minor >= known.since)) {
    const { since, sources } = known;
    return { name, since, source: sources[0] ?? changelogOf(since) };
  }
  const target = nearestFactsOf(version);
  const since = target && lostSince(target, (facts) => has(facts, setting));
  if (since === undefined) return undefined;
  const { sources: [source = changelogOf(since)] = [], cleanedIn } =
    REMOVAL_NOTES.find(isNamed) ?? {};
  return { name, since, source, ...(cleanedIn !== undefined && { cleanedIn }) };
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

function changelogOf(minor: number): string {
  return `https://github.com/kubernetes/kubernetes/blob/master/CHANGELOG/CHANGELOG-1.${minor}.md`;
}

/**
 * Reads the flags and feature gates that a cluster sets for its components, and judges them for a version. The places
 * differ between products, and the rules do not.
 */
import { isRecord } from '../util/json.ts';
import { ownMember } from '../util/own-member.ts';
import { scalarText } from '../util/scalar-text.ts';
import type { Component } from './minor-facts.ts';
import {
  lockedGate,
  type Removal,
  removedFlag,
  removedGate,
  removedKubeadmGate,
} from './removed-settings.ts';

/** A flag or a feature gate that somebody has set. */
export interface Setting {
  /** `gate` is a feature gate of the component, and `flag` is a flag of it. */
  readonly kind: 'gate' | 'flag';
  /** `kubeadm` has feature gates of its own, which are no feature gates of components. */
  readonly component: Component | 'kubeadm';
  readonly name: string;
  /** The value of a feature gate, if it is a boolean. */
  readonly value?: boolean;
  /** Where it is set, such as `apiServer.extraArgs of ConfigMap kube-system/kubeadm-config`. */
  readonly place: string;
}

const FEATURE_GATES = 'feature-gates';

/** Returns the settings in pairs of a flag and its value. */
export function settingsOfFlags(
  component: Component,
  flags: readonly (readonly [name: string, value: string])[],
  place: string,
): Setting[] {
  return flags.flatMap(([name, value]): Setting[] =>
    name.replaceAll('_', '-') === FEATURE_GATES
      ? gatesIn(value).map((gate) => ({ kind: 'gate', component, ...gate, place }))
      : [{ kind: 'flag', component, name, place }],
  );
}

/**
 * Returns the settings in a field such as `extraArgs`. Both forms are read: a map, and a list of names and values, which
 * kubeadm has since v1beta4.
 */
export function settingsOfExtraArgs(
  component: Component,
  extraArgs: unknown,
  place: string,
): Setting[] {
  const pairs: (readonly [unknown, unknown])[] = Array.isArray(extraArgs)
    ? extraArgs.map((each) => [memberOf(each, 'name'), memberOf(each, 'value')])
    : Object.entries(isRecord(extraArgs) ? extraArgs : {});
  const flags = pairs.flatMap(([name, value]) =>
    typeof name === 'string' && typeof value === 'string' ? [[name, value] as const] : [],
  );
  return settingsOfFlags(component, flags, place);
}

/** Returns the feature gates in the field `featureGates` of a configuration file. */
export function settingsOfGates(
  component: Setting['component'],
  configuration: unknown,
  place: string,
): Setting[] {
  const gates = memberOf(configuration, 'featureGates');
  return Object.entries(isRecord(gates) ? gates : {}).map(([name, value]) => ({
    kind: 'gate',
    component,
    name,
    place,
    ...gateValue(value),
  }));
}

export function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) ? ownMember(value, name) : undefined;
}

/** Returns the gates in a value such as `A=true,B=false`. The value of a gate is absent if it is no boolean. */
export function gatesIn(text: string): { readonly name: string; readonly value?: boolean }[] {
  return text.split(',').flatMap((each) => {
    const [name = '', value = ''] = each.split('=', 2).map((part) => part.trim());
    return name === '' ? [] : [{ name, ...gateValue(value) }];
  });
}

/** Reads a boolean as Go does. */
function gateValue(value: unknown): { readonly value?: boolean } {
  const text = scalarText(value).toLowerCase();
  if (['1', 't', 'true'].includes(text)) return { value: true };
  return ['0', 'f', 'false'].includes(text) ? { value: false } : {};
}

export interface SettingFault {
  /** False if it is not proved that the component refuses the setting. */
  readonly isCertain: boolean;
  /** What is wrong, as a sentence without its end. It begins with the setting and its place. */
  readonly message: string;
  /** A file from which kubeadm, or Refit, removes the setting during an upgrade. */
  readonly cleanedIn?: string | undefined;
}

/** Returns why the component of `version` would not start with this setting; undefined if Refit knows no reason. */
export function faultOf(setting: Setting, version: string): SettingFault | undefined {
  const { kind, component, name, value, place } = setting;
  const what = kind === 'flag' ? `flag --${name} in ${place}` : `feature gate ${name} in ${place}`;
  if (component === 'kubeadm') {
    const own = removedKubeadmGate(name, version);
    // It is not proved that `kubeadm upgrade` of each version refuses a gate that it does not know, as `kubeadm init` does.
    return (
      own && {
        isCertain: false,
        message: `${what}: kubeadm 1.${own.since} removed it, so kubeadm may refuse this configuration (${own.source})`,
      }
    );
  }
  if (kind === 'flag') return removalFault(removedFlag(component, name, version), what, component);
  const removal = removedGate(component, name, version);
  if (removal !== undefined) return removalFault(removal, what, component);
  const lock = value === undefined ? undefined : lockedGate(component, { name, value }, version);
  if (lock === undefined) return undefined;
  const locks = lock.isChange ? `1.${lock.since} locked` : `1.${lock.since} locks`;
  return {
    isCertain: true,
    message: `${what}: Kubernetes ${locks} it to ${lock.value}, so ${subjectOf(component)} would not start with ${!lock.value}`,
  };
}

function removalFault(
  removal: Removal | undefined,
  what: string,
  component: Component,
): SettingFault | undefined {
  if (removal === undefined) return undefined;
  const { since, source, cleanedIn } = removal;
  return {
    isCertain: true,
    message: `${what}: Kubernetes 1.${since} removed it, so ${subjectOf(component)} would not start (${source})`,
    cleanedIn,
  };
}

function subjectOf(component: Component): string {
  return component === 'kubelet' ? 'the kubelet' : component;
}

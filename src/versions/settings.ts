/**
 * Reads the flags and feature gates that a cluster sets for its components, and judges them for a version. The places
 * differ between products, and the rules do not.
 */
import { isRecord } from '../util/json.ts';
import { ownMember } from '../util/own-member.ts';
import { scalarText } from '../util/scalar-text.ts';
import type { Component } from './minor-facts.ts';
import { lockedGate, removalOf, type SettingName } from './removed-settings.ts';

/** A flag or a feature gate that somebody has set. */
export interface Setting extends SettingName {
  /** The value of a feature gate, if it is a boolean. */
  readonly value?: boolean;
  /** Where in its object it is set, such as `apiServer.extraArgs`, or the path of its file on a host. */
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

/** Returns the settings in the arguments of a process, such as `--v=2`. A value may also be an argument of its own. */
export function settingsOfArguments(
  component: Component,
  args: readonly string[],
  place: string,
): Setting[] {
  const flags = args.flatMap((arg, index): (readonly [string, string])[] => {
    const [, name, assigned] = /^--?([A-Za-z][^=\s]*)(?:=([\s\S]*))?$/.exec(arg) ?? [];
    if (name === undefined) return [];
    const next = args[index + 1] ?? '';
    return [[name, assigned ?? (next.startsWith('-') ? '' : next)]];
  });
  return settingsOfFlags(component, flags, place);
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

const OF_KUBEADM = [
  ['apiServer', 'kube-apiserver'],
  ['controllerManager', 'kube-controller-manager'],
  ['scheduler', 'kube-scheduler'],
] as const;

/** Returns the settings in a ClusterConfiguration of kubeadm. `at` comes before each place in it. */
export function settingsOfClusterConfiguration(cluster: unknown, at = ''): Setting[] {
  const ofComponents = OF_KUBEADM.flatMap(([field, component]) => {
    const extraArgs = memberOf(memberOf(cluster, field), 'extraArgs');
    return settingsOfExtraArgs(component, extraArgs, `${at}${field}.extraArgs`);
  });
  return [...ofComponents, ...settingsOfGates('kubeadm', cluster, `${at}featureGates`)];
}

/**
 * Returns the places in a ClusterConfiguration of kubeadm whose form is none that kubeadm reads, so that nobody knows what
 * is set there.
 */
export function strangePlacesOf(cluster: unknown): string[] {
  if (!isRecord(cluster)) return ['the whole document'];
  const ofComponents = OF_KUBEADM.flatMap(([field]) => {
    const part = cluster[field] ?? {};
    if (!isRecord(part)) return [field];
    return isReadable(part['extraArgs'] ?? []) ? [] : [`${field}.extraArgs`];
  });
  return [...ofComponents, ...strangeGatesIn(cluster)];
}

/** Returns the field `featureGates` of a configuration file, if it is no map of gates. */
export function strangeGatesIn(configuration: unknown): string[] {
  if (!isRecord(configuration)) return ['the whole document'];
  return isRecord(configuration['featureGates'] ?? {}) ? [] : ['featureGates'];
}

/** Returns true if `settingsOfExtraArgs` reads each flag in the value. */
function isReadable(extraArgs: unknown): boolean {
  if (isRecord(extraArgs))
    return Object.values(extraArgs).every((value) => typeof value === 'string');
  return (
    Array.isArray(extraArgs) &&
    extraArgs.every((each) =>
      ['name', 'value'].every((field) => typeof memberOf(each, field) === 'string'),
    )
  );
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
  /** Why the component would not start, as a clause. */
  readonly why: string;
  /** A file from which kubeadm, or Refit, removes the setting during an upgrade. */
  readonly cleanedIn?: string | undefined;
}

/** Returns the setting as it is called in a sentence. */
export function nameOf({ kind, name, place }: Setting): string {
  return kind === 'flag' ? `flag --${name} in ${place}` : `feature gate ${name} in ${place}`;
}

/** Returns why the component of `version` would not start with this setting; undefined if Refit knows no reason. */
export function faultOf(setting: Setting, version: string): SettingFault | undefined {
  const { component, name, value } = setting;
  const removal = removalOf(setting, version);
  if (component === 'kubeadm')
    // It is not proved that `kubeadm upgrade` of each version refuses a gate that it does not know, as `kubeadm init` does.
    return (
      removal && {
        isCertain: false,
        why: `kubeadm 1.${removal.since} removed it, so kubeadm may refuse this configuration (${removal.source})`,
      }
    );
  const subject = component === 'kubelet' ? 'the kubelet' : component;
  if (removal !== undefined) {
    const { since, source, cleanedIn } = removal;
    const why = `Kubernetes 1.${since} removed it, so ${subject} would not start (${source})`;
    return { isCertain: true, why, cleanedIn };
  }
  const lock = value === undefined ? undefined : lockedGate(component, { name, value }, version);
  if (lock === undefined) return undefined;
  const locks = lock.isChange ? `1.${lock.since} locked` : `1.${lock.since} locks`;
  return {
    isCertain: true,
    why: `Kubernetes ${locks} it to ${lock.value}, so ${subject} would not start with ${!lock.value}`,
  };
}

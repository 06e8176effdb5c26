/** Reads the flags and feature gates that K3s and RKE2 give to the components of Kubernetes. */
import { type Node, nodes } from '../../../kube/resources.ts';
import {
  type DialectReadiness,
  readPlace,
  type SettingsFound,
  together,
  unreadPlace,
} from '../../../ready/context.ts';
import { parseJson } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import type { Component } from '../../../versions/minor-facts.ts';
import { type Setting, settingsOfArguments } from '../../../versions/settings.ts';
import { drainRights, undrainedNodes } from './drain-rights.ts';

/**
 * K3s and RKE2 write the arguments of their process into these annotations of the Node, as a JSON list. The list also has
 * what their configuration files say.
 */
const ANNOTATIONS = ['k3s.io/node-args', 'rke2.io/node-args'];

/** The arguments of K3s and RKE2 that have an argument of a component as their value. */
const PASSED: ReadonlyMap<string, Component> = new Map([
  ['kube-apiserver-arg', 'kube-apiserver'],
  ['kube-controller-manager-arg', 'kube-controller-manager'],
  ['kube-controller-arg', 'kube-controller-manager'],
  ['kube-scheduler-arg', 'kube-scheduler'],
  ['kubelet-arg', 'kubelet'],
  ['kube-proxy-arg', 'kube-proxy'],
]);

export const rancherReadiness: DialectReadiness = {
  async settings({ list }) {
    const asked = await list(nodes);
    if (asked.kind === 'unknown') return unreadPlace('the annotations of Nodes', asked.why);
    return together(asked.value.flatMap(settingsOfNode));
  },
  // Jobs do the work, so no agent runs before it.
  machines: drainRights,
  undrained: undrainedNodes,
};

function settingsOfNode({ metadata: { name, annotations = {} } }: Node): SettingsFound[] {
  return ANNOTATIONS.flatMap((annotation) => {
    const text = ownMember(annotations, annotation);
    if (text === undefined) return [];
    const object = `Node ${name}`;
    const args = parseJson(text);
    if (!Array.isArray(args) || !args.every((arg) => typeof arg === 'string'))
      return [unreadPlace(object, `the annotation ${annotation} is no list of arguments`)];
    return [readPlace(object, passedSettings(args, `the annotation ${annotation}`))];
  });
}

/** Returns the settings in arguments such as `--kubelet-arg=v=2`. A value may also be an argument of its own. */
export function passedSettings(args: readonly string[], place: string): Setting[] {
  return args.flatMap((arg, index) => {
    const [, name = '', assigned] = /^--?([a-z-]+)(?:=([\s\S]*))?$/.exec(arg) ?? [];
    const component = PASSED.get(name);
    if (component === undefined) return [];
    const value = assigned ?? args[index + 1] ?? '';
    // The value may begin with dashes, and K3s removes them.
    return settingsOfArguments(component, [`--${value.replace(/^-+/, '')}`], place);
  });
}

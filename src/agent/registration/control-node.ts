/** Owns what the ControlNode of a controller must say about it, and what of that is missing. */
import { isIP } from 'node:net';
import { apiVersionOf } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import { type ControlNode, controlNodes, MODE_ANNOTATION } from '../../signal/names.ts';
import { sameJson } from '../../util/json.ts';

export type ControllerMode = 'controller' | 'controller+worker';

export interface ControllerFacts {
  /** Of the ControlNode. */
  readonly name: string;
  /** Name that the kubelet registers under; that of the ControlNode where none runs. */
  readonly nodeName: string;
  readonly mode: ControllerMode;
  /** As Go calls them: `linux`, `amd64`. */
  readonly os: string;
  readonly arch: string;
  /** Where the API server of this controller is reached; absent where nothing tells. */
  readonly address?: string;
  /** Version that runs; absent while the service does not answer. */
  readonly version?: string;
}

/** What is to be claimed; undefined where the object says all of it. */
export function missingFields(object: KubeObject | undefined, facts: ControllerFacts): KubeObject | undefined {
  const labels = {
    'kubernetes.io/hostname': facts.nodeName,
    'kubernetes.io/os': facts.os,
    'kubernetes.io/arch': facts.arch,
  };
  const annotations = { [MODE_ANNOTATION]: facts.mode };
  const says = object?.metadata;
  if (contains(says?.labels, labels) && contains(says?.annotations, annotations)) return undefined;
  const { kind } = controlNodes;
  return { apiVersion: apiVersionOf(controlNodes), kind, metadata: { name: facts.name, labels, annotations } };
}

/** The object with the status that it must have; undefined where it has it. Addresses of other types stay. */
export function withTrueStatus(object: ControlNode, facts: ControllerFacts): ControlNode | undefined {
  const known = object.status?.addresses ?? [];
  const address = facts.address ?? known.find(({ type }) => type === 'InternalIP')?.address;
  const addresses = [
    ...(address === undefined ? [] : [{ address, type: 'InternalIP' }]),
    { address: facts.nodeName, type: 'Hostname' },
    ...known.filter(({ type }) => type !== 'InternalIP' && type !== 'Hostname'),
  ];
  const version = facts.version === undefined ? {} : { k0sVersion: facts.version };
  const status = { ...object.status, addresses, ...version };
  return sameJson(status, object.status) ? undefined : { ...object, status };
}

/** Others read the address as that of an API server, and take no name for one. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0;
}

function contains(all: Readonly<Record<string, string>> = {}, part: Readonly<Record<string, string>>): boolean {
  return Object.entries(part).every(([key, value]) => all[key] === value);
}

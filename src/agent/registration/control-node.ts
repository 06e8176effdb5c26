/** What the ControlNode of a controller must say, and what of it is missing. */
import { isIP } from 'node:net';
import { apiVersionOf, type KubeObject } from '../../kube/resources.ts';
import { type ControlNode, controlNodes, MODE_ANNOTATION } from '../../signal/names.ts';
import { sameJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';

export type ControllerMode = 'controller' | 'controller+worker';

export interface ControllerFacts {
  readonly name: string;
  /** Name of the Node; the name of the ControlNode when no kubelet runs. */
  readonly nodeName: string;
  readonly mode: ControllerMode;
  /** In Go's words: `linux`, `amd64`. */
  readonly os: string;
  readonly arch: string;
  /** Address of this controller's API server; absent when unknown. */
  readonly address?: string;
  /** Running version; absent while the service does not answer. */
  readonly version?: string;
}

/** The fields to apply; undefined when the object has them all. */
export function missingFields(
  object: KubeObject | undefined,
  facts: ControllerFacts,
): KubeObject | undefined {
  const labels = {
    'kubernetes.io/hostname': facts.nodeName,
    'kubernetes.io/os': facts.os,
    'kubernetes.io/arch': facts.arch,
  };
  const annotations = { [MODE_ANNOTATION]: facts.mode };
  const found = object?.metadata;
  if (contains(found?.labels, labels) && contains(found?.annotations, annotations))
    return undefined;
  const { kind } = controlNodes;
  return {
    apiVersion: apiVersionOf(controlNodes),
    kind,
    metadata: { name: facts.name, labels, annotations },
  };
}

/** The object with the right status; undefined when it has it. Addresses of other types stay. */
export function withTrueStatus(
  object: ControlNode,
  facts: ControllerFacts,
): ControlNode | undefined {
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

/** Readers expect an IP address of an API server, not a name. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0;
}

function contains(
  all: Readonly<Record<string, string>> = {},
  part: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(part).every(([key, value]) => ownMember(all, key) === value);
}

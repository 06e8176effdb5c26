/** Computes the required content of the ControlNode of a controller, and the fields that are missing from it. */
import { isIP } from 'node:net';
import { apiVersionOf, type KubeObject } from '../../kube/resources.ts';
import { type ControlNode, controlNodes, MODE_ANNOTATION } from '../../signal/names.ts';
import { sameJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';

export type ControllerMode = 'controller' | 'controller+worker';

export interface ControllerFacts {
  readonly name: string;
  /** The name of the Node. Without a kubelet it is the name of the ControlNode. */
  readonly nodeName: string;
  readonly mode: ControllerMode;
  /** The operating system and the architecture as Go names them: `linux`, `amd64`. */
  readonly os: string;
  readonly arch: string;
  /** The address of this controller's API server; absent if it is not known. */
  readonly address?: string;
  /** The running version; absent while the service does not answer. */
  readonly version?: string;
}

/** Returns the fields to apply; undefined if the object has all of them. */
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

/**
 * Returns the object with the right status; undefined if the status is right already. Addresses of other types stay.
 */
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

/** Returns true if the text is an IP address. Other programs read this field and do not expect a host name. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0;
}

function contains(
  all: Readonly<Record<string, string>> = {},
  part: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(part).every(([key, value]) => ownMember(all, key) === value);
}

/**
 * Seals annotations of a Node: a label holds their digest. A kubelet may change the annotations of its own Node, but the
 * admission plugin NodeRestriction forbids kubelets to set or to remove labels with this prefix. So annotations with the
 * right seal were written by Refit. A label can be missing: a kubelet can make Cluster API remove it.
 */
import { hash } from 'node:crypto';
import type { KubeObject } from '../../../kube/resources.ts';
import { ownMember } from '../../../util/own-member.ts';

const PREFIX = 'node-restriction.kubernetes.io/';
/** The label with the digest of the request to update a Machine and of its record. */
export const UPDATE_SEAL = `${PREFIX}refit-machine-update`;
/** The label with the digest of what people have asked of the plan that the Node represents. */
export const CONTROLS_SEAL = `${PREFIX}refit-controls`;

/** The characters of a digest. The value of a label has at most 63 characters. */
const DIGITS = 32;

/** Returns the digest of these annotations of the Node; undefined if it has none of them. */
export function digestOf({ metadata }: KubeObject, keys: readonly string[]): string | undefined {
  const { name, annotations = {} } = metadata;
  const values = keys.map((key) => ownMember(annotations, key) ?? null);
  if (values.every((value) => value === null)) return undefined;
  return hash('sha256', JSON.stringify([name, ...values])).slice(0, DIGITS);
}

export function sealOn({ metadata: { labels } }: KubeObject, seal: string): string | undefined {
  return ownMember(labels, seal);
}

/** Returns the object with this value of the seal, or without the seal if there is no value. */
export function withSeal<T extends KubeObject>(
  object: T,
  seal: string,
  value: string | undefined,
): T {
  if (sealOn(object, seal) === value) return object;
  const others = Object.entries(object.metadata.labels ?? {}).filter(([key]) => key !== seal);
  const own = value === undefined ? [] : [[seal, value] as const];
  const labels = Object.fromEntries([...others, ...own]);
  return { ...object, metadata: { ...object.metadata, labels } };
}

/**
 * Returns an object as it is after the original has read it into its Go structs: without the members that its release
 * does not know.
 */
import type { KubeObject } from '../../../src/kube/resources.ts';
import { isRecord } from '../../../src/util/json.ts';

/** The members of meta/v1 ObjectMeta. Labels and annotations are maps, so all their keys survive. */
const METADATA = (
  'name generateName namespace selfLink uid resourceVersion generation creationTimestamp ' +
  'deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences finalizers'
).split(' ');
/** The members of core/v1 NodeSpec. */
const NODE_SPEC = [
  'podCIDR',
  'podCIDRs',
  'providerID',
  'unschedulable',
  'taints',
  'configSource',
  'externalID',
];
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  Node: ['apiVersion', 'kind', 'metadata', 'spec', 'status'],
  ControlNode: ['apiVersion', 'kind', 'metadata', 'status'],
};

/** Returns a copy without the members that the structs do not have. */
export function typed<T extends KubeObject>(object: T): T {
  const copy = pick(
    structuredClone(object) as T & Record<string, unknown>,
    MEMBERS[object.kind ?? ''] ?? [],
  );
  const spec = copy['spec'];
  const metadata = pick(copy['metadata'] as Record<string, unknown>, METADATA);
  return {
    ...copy,
    metadata,
    ...(isRecord(spec) ? { spec: pick(spec, NODE_SPEC) } : {}),
  } as unknown as T;
}

function pick(
  record: Record<string, unknown>,
  members: readonly string[],
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => members.includes(name)));
}

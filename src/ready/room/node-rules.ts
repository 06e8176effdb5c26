/** Says whether a node accepts a pod, by rules that need only this node: taints, labels, ports, and free resources. */
import type { Node } from '../../kube/resources.ts';
import { ownMember } from '../../util/own-member.ts';
import { parseQuantity } from '../../util/quantity.ts';
import type {
  NodeRequirement,
  NodeSelectorTerm,
  PlacedPod,
  PlacedSpec,
  Toleration,
} from '../pods.ts';

export type Resources = ReadonlyMap<string, number>;

/** A node, and what the pods on it already use. */
export interface RoomPlace {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly {
    readonly key: string;
    readonly value?: string;
    readonly effect: string;
  }[];
  readonly allocatable: Resources;
  readonly pods: readonly PlacedPod[];
  readonly used: Resources;
}

/** The resource that each pod uses once. */
const PODS = 'pods';
const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';

/** Returns the place as it is while it is cordoned. */
export function cordoned(place: RoomPlace): RoomPlace {
  return { ...place, taints: [...place.taints, { key: UNSCHEDULABLE, effect: 'NoSchedule' }] };
}

export function placeOf(node: Node, pods: readonly PlacedPod[]): RoomPlace {
  const { allocatable = {} } = (node.status ?? {}) as {
    readonly allocatable?: Readonly<Record<string, string>>;
  };
  const { taints = [], unschedulable = false } = node.spec ?? {};
  const isMarked = taints.some(({ key }) => key === UNSCHEDULABLE);
  return {
    name: node.metadata.name,
    labels: node.metadata.labels ?? {},
    taints:
      unschedulable && !isMarked
        ? [...taints, { key: UNSCHEDULABLE, effect: 'NoSchedule' }]
        : taints,
    allocatable: resourcesIn(allocatable),
    pods,
    used: sumOf(pods.map(requestsOf)),
  };
}

function resourcesIn(texts: Readonly<Record<string, string>>): Map<string, number> {
  return new Map(Object.entries(texts).map(([name, text]) => [name, parseQuantity(text) ?? 0]));
}

function sumOf(all: readonly Resources[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const each of all)
    for (const [name, value] of each) sum.set(name, (sum.get(name) ?? 0) + value);
  return sum;
}

function mostOf(...all: readonly Resources[]): Map<string, number> {
  const most = new Map<string, number>();
  for (const each of all)
    for (const [name, value] of each) most.set(name, Math.max(most.get(name) ?? 0, value));
  return most;
}

/**
 * Returns what the scheduler counts for the pod: the requests of its containers and sidecars, or those of an init
 * container if they are larger, or the requests of the whole pod if it has any, and the overhead.
 */
export function requestsOf(pod: PlacedPod): Resources {
  // The requests of a pod are needed for each node that it is compared with.
  return known.getOrInsertComputed(pod, computedRequests);
}

const known = new WeakMap<PlacedPod, Resources>();

function computedRequests({ spec = {} }: PlacedPod): Resources {
  const { containers = [], initContainers = [], overhead = {}, resources } = spec;
  const requestsIn = (from: {
    readonly resources?: { readonly requests?: Readonly<Record<string, string>> };
  }) => resourcesIn(from.resources?.requests ?? {});
  let sidecars: Resources = new Map();
  let starting: Resources = new Map();
  for (const container of initContainers)
    if (container.restartPolicy === 'Always') {
      sidecars = sumOf([sidecars, requestsIn(container)]);
      starting = mostOf(starting, sidecars);
    } else starting = mostOf(starting, sumOf([sidecars, requestsIn(container)]));
  const running = sumOf([sidecars, ...containers.map(requestsIn)]);
  const whole = new Map([...mostOf(running, starting), ...resourcesIn(resources?.requests ?? {})]);
  return sumOf([whole, resourcesIn(overhead), new Map([[PODS, 1]])]);
}

/** Why a node does not accept a pod, as the end of a sentence that begins with the number of nodes. */
export type NoRoom = string;

/** Returns why the node does not accept the pod; undefined if these rules allow it. */
export function refusalOf(pod: PlacedPod, place: RoomPlace): NoRoom | undefined {
  const { spec = {} } = pod;
  const taint = untoleratedTaint(pod, place);
  if (taint !== undefined) return `the taint ${taint.key}`;
  if (!isSelected(spec, place)) return 'other labels than the pod requires';
  if (hasPortConflict(spec, place.pods)) return 'its host port in use';
  return lackOf(requestsOf(pod), place);
}

/** Returns which resource is missing. */
export function lackOf(requests: Resources, { allocatable, used }: RoomPlace): NoRoom | undefined {
  for (const [name, wanted] of requests) {
    const free = (allocatable.get(name) ?? 0) - (used.get(name) ?? 0);
    // Sums of fractions such as 0.1 are not exact.
    if (wanted > 0 && wanted > free + 1e-6) return `too little ${name}`;
  }
  return undefined;
}

function tolerates(
  { key = '', operator = 'Equal', value = '', effect = '' }: Toleration,
  taint: RoomPlace['taints'][number],
): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  if (key === '') return false;
  const has = taint.value ?? '';
  if (operator === 'Lt' || operator === 'Gt') {
    return operator === 'Lt' ? Number(has) < Number(value) : Number(has) > Number(value);
  }
  return value === has;
}

/** Returns true if the labels of the node are those that the pod requires. */
export function isSelected(
  { nodeSelector = {}, affinity }: PlacedSpec,
  { name, labels }: Pick<RoomPlace, 'name' | 'labels'>,
): boolean {
  if (Object.entries(nodeSelector).some(([key, value]) => ownMember(labels, key) !== value))
    return false;
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || meetsTerms(required.nodeSelectorTerms ?? [], { name, labels });
}

/** Returns true if the node meets one of the terms. An empty term selects nothing. */
export function meetsTerms(
  terms: readonly NodeSelectorTerm[],
  { name, labels }: Pick<RoomPlace, 'name' | 'labels'>,
): boolean {
  return terms.some(({ matchExpressions = [], matchFields = [] }) => {
    if (matchExpressions.length + matchFields.length === 0) return false;
    return (
      matchExpressions.every((each) => meets(each, ownMember(labels, each.key))) &&
      matchFields.every((each) => each.key === 'metadata.name' && meets(each, name))
    );
  });
}

function meets({ operator, values = [] }: NodeRequirement, found: string | undefined): boolean {
  const [first = ''] = values;
  switch (operator) {
    case 'In':
      return found !== undefined && values.includes(found);
    case 'NotIn':
      return found === undefined || !values.includes(found);
    case 'Exists':
      return found !== undefined;
    case 'DoesNotExist':
      return found === undefined;
    case 'Gt':
      return found !== undefined && Number(found) > Number(first);
    case 'Lt':
      return found !== undefined && Number(found) < Number(first);
    default:
      return false;
  }
}

function portsOf({ containers = [], initContainers = [] }: PlacedSpec) {
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...containers, ...sidecars].flatMap(({ ports = [] }) => ports);
}

function hasPortConflict(spec: PlacedSpec, others: readonly PlacedPod[]): boolean {
  const wanted = portsOf(spec);
  if (wanted.length === 0) return false;
  const used = others.flatMap((each) => portsOf(each.spec ?? {}));
  return wanted.some((mine) =>
    used.some(
      (theirs) =>
        mine.hostPort === theirs.hostPort &&
        (mine.protocol ?? 'TCP') === (theirs.protocol ?? 'TCP') &&
        sharesAddress(mine.hostIP, theirs.hostIP),
    ),
  );
}

function sharesAddress(mine = '0.0.0.0', theirs = '0.0.0.0'): boolean {
  return mine === theirs || mine === '0.0.0.0' || theirs === '0.0.0.0';
}

/** Returns the first taint that keeps the pod from the node; undefined if the pod tolerates all of them. */
export function untoleratedTaint({ spec = {} }: PlacedPod, { taints }: RoomPlace) {
  return taints.find(
    (each) =>
      ['NoSchedule', 'NoExecute'].includes(each.effect) &&
      !(spec.tolerations ?? []).some((toleration) => tolerates(toleration, each)),
  );
}

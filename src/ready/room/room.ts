/**
 * Says for each pod of a node that would be drained whether another node can run it. The rules are those of the scheduler
 * that the facts of the cluster decide. A rule that is not modelled can only keep a pod from a node, so "fits nowhere" is
 * certain, and a pod that fits by the modelled rules alone is unknown if another rule concerns it.
 */
import type { PlacedPod } from '../pods.ts';
import { hasNeighbourRules, type Neighbourhood, neighbourRefusal } from './neighbour-rules.ts';
import {
  cordoned,
  lackOf,
  type NoRoom,
  type RoomPlace,
  refusalOf,
  requestsOf,
} from './node-rules.ts';
import { type Volumes, volumeRefusal } from './volume-rules.ts';

export type Fit =
  | { readonly kind: 'fits' }
  /** No node can run the pod. `refusals` has the number of nodes by the reason. */
  | { readonly kind: 'nowhere'; readonly refusals: ReadonlyMap<NoRoom, number> }
  /** Only a node whose pods of lower priority the scheduler evicts can run the pod. */
  | { readonly kind: 'preempts' }
  | { readonly kind: 'unknown'; readonly rule: string };

export interface RoomFacts extends Neighbourhood {
  readonly volumes: Volumes;
  /** The pods that the scheduler cannot place now. */
  readonly waiting: readonly PlacedPod[];
}

const DEFAULT_SCHEDULER = 'default-scheduler';

/** Returns where the pod could run if its node were drained. */
export function fitOf(pod: PlacedPod, from: RoomPlace, facts: RoomFacts): Fit {
  const { spec = {} } = pod;
  const { schedulerName = DEFAULT_SCHEDULER } = spec;
  if (schedulerName !== DEFAULT_SCHEDULER)
    return { kind: 'unknown', rule: `the scheduler ${schedulerName} places it` };
  const others = facts.places.filter((place) => place !== from);
  // The other pods of the node may still be there when the scheduler looks for room, or may already be gone.
  const stays = (): boolean => false;
  const leaves = (other: PlacedPod): boolean => from.pods.includes(other);
  const isConcerned = hasNeighbourRules(pod, facts);
  // A drain cordons the node, and the rules of its neighbours see that.
  const world = isConcerned ? { ...facts, places: [...others, cordoned(from)] } : facts;
  const before = placed(pod, others, world, stays);
  const after = isConcerned ? placed(pod, others, world, leaves) : before;
  if (before.fits && after.fits) return withoutModel(pod, facts);
  if (before.fits !== after.fits)
    return { kind: 'unknown', rule: 'it depends on the order in which the pods of the node go' };
  if (mayPreempt(pod, others, world)) return { kind: 'preempts' };
  return { kind: 'nowhere', refusals: before.refusals };
}

/** Returns that the pod fits, unless a rule that is not modelled concerns it. */
function withoutModel({ spec = {}, metadata }: PlacedPod, { volumes }: RoomFacts): Fit {
  if ((spec.resourceClaims ?? []).length > 0)
    return { kind: 'unknown', rule: 'it has ResourceClaims of dynamic resource allocation' };
  if ((spec.schedulingGates ?? []).length > 0)
    return { kind: 'unknown', rule: 'it has scheduling gates' };
  const unbound = volumes.unboundClaimOf(spec, metadata.namespace ?? '');
  if (unbound !== undefined)
    return {
      kind: 'unknown',
      rule: `its PersistentVolumeClaim ${unbound} has no volume that Refit can see`,
    };
  return { kind: 'fits' };
}

interface Placed {
  readonly fits: boolean;
  readonly refusals: ReadonlyMap<NoRoom, number>;
}

function placed(
  pod: PlacedPod,
  places: readonly RoomPlace[],
  facts: RoomFacts,
  isGone: (other: PlacedPod) => boolean,
): Placed {
  const refusals = new Map<NoRoom, number>();
  const isConcerned = hasNeighbourRules(pod, facts);
  for (const place of places) {
    const refusal =
      refusalOf(pod, place) ??
      volumeRefusal(pod, place, facts.volumes) ??
      (isConcerned ? neighbourRefusal(pod, place, facts, isGone) : undefined);
    if (refusal === undefined) return { fits: true, refusals };
    refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1);
  }
  return { fits: false, refusals };
}

/** Returns true if the pod would fit somewhere without the pods of lower priority there. */
function mayPreempt(pod: PlacedPod, places: readonly RoomPlace[], facts: RoomFacts): boolean {
  const priority = pod.spec?.priority ?? 0;
  const isLower = (other: PlacedPod): boolean => (other.spec?.priority ?? 0) < priority;
  return places.some((place) => {
    if (!place.pods.some(isLower)) return false;
    const pods = place.pods.filter((other) => !isLower(other));
    const used = new Map(place.used);
    for (const lower of place.pods.filter(isLower))
      for (const [name, value] of requestsOf(lower)) used.set(name, (used.get(name) ?? 0) - value);
    const emptied = { ...place, pods, used };
    return (
      refusalOf(pod, emptied) === undefined &&
      volumeRefusal(pod, emptied, facts.volumes) === undefined &&
      neighbourRefusal(pod, emptied, facts, isLower) === undefined
    );
  });
}

/**
 * Returns the resource of which all pods together request more than all other nodes that accept one of them have free.
 * Some of them then fit nowhere, although each alone may fit.
 */
export function sharedLack(
  pods: readonly PlacedPod[],
  from: RoomPlace,
  { places }: Pick<RoomFacts, 'places'>,
): NoRoom | undefined {
  const wanted = new Map<string, number>();
  for (const pod of pods)
    for (const [name, value] of requestsOf(pod)) wanted.set(name, (wanted.get(name) ?? 0) + value);
  const allocatable = new Map<string, number>();
  const used = new Map<string, number>();
  const lack = (): NoRoom | undefined => lackOf(wanted, { ...from, allocatable, used });
  for (const place of places) {
    if (place === from || !pods.some((pod) => refusalOf(pod, place) === undefined)) continue;
    for (const [name, value] of place.allocatable)
      allocatable.set(name, (allocatable.get(name) ?? 0) + value);
    for (const [name, value] of place.used) used.set(name, (used.get(name) ?? 0) + value);
    // Usually a few nodes have room for all of them.
    if (lack() === undefined) return undefined;
  }
  return lack();
}

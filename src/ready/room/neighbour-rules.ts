/** Says whether a node accepts a pod, by rules that need the pods of other nodes: affinity between pods, and hard spread. */
import type { KubeObject, LabelSelector } from '../../kube/resources.ts';
import { labelMatcher } from '../../kube/selectors.ts';
import { ownMember } from '../../util/own-member.ts';
import type { PlacedPod, PodAffinityTerm, SpreadConstraint } from '../pods.ts';
import { isSelected, type NoRoom, type RoomPlace, untoleratedTaint } from './node-rules.ts';

/** What these rules read of a cluster. */
export interface Neighbourhood {
  readonly places: readonly RoomPlace[];
  readonly namespaces: ReadonlyMap<string, KubeObject>;
  /** The required anti-affinities of all pods to other pods. */
  readonly repelling: readonly Repulsion[];
}

/** A pod keeps the pods that `isMatch` selects from all nodes with this label. */
interface Repulsion {
  readonly pod: PlacedPod;
  readonly topologyKey: string;
  readonly domain: string;
  readonly isMatch: (other: PlacedPod) => boolean;
}

export function neighbourhoodOf(
  places: readonly RoomPlace[],
  spaces: readonly KubeObject[],
): Neighbourhood {
  const namespaces = new Map(spaces.map((each) => [each.metadata.name, each]));
  const repelling = places.flatMap((place) =>
    place.pods.flatMap((pod) => repulsionsOf(pod, place, namespaces)),
  );
  return { places, namespaces, repelling };
}

function repulsionsOf(
  pod: PlacedPod,
  { labels }: RoomPlace,
  namespaces: Neighbourhood['namespaces'],
): Repulsion[] {
  return antiTermsOf(pod).flatMap((term) => {
    const { topologyKey } = term;
    const domain = ownMember(labels, topologyKey);
    if (domain === undefined) return [];
    return [{ pod, topologyKey, domain, isMatch: matcherOf(pod, term, { namespaces }) }];
  });
}

type Terms = readonly PodAffinityTerm[];

function termsOf({ spec = {} }: PlacedPod): Terms {
  return spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
}

function antiTermsOf({ spec = {} }: PlacedPod): Terms {
  return spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
}

function hardConstraintsOf({ spec = {} }: PlacedPod): readonly SpreadConstraint[] {
  const { topologySpreadConstraints = [] } = spec;
  return topologySpreadConstraints.filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  );
}

/** Returns true if one of these rules may concern the pod. */
export function hasNeighbourRules(pod: PlacedPod, { repelling }: Neighbourhood): boolean {
  return (
    termsOf(pod).length + antiTermsOf(pod).length + hardConstraintsOf(pod).length > 0 ||
    repelling.length > 0
  );
}

/**
 * Returns why these rules keep the pod from the node; undefined if they allow it. `pod` itself does not count, and neither
 * do the pods for which `isGone` returns true.
 */
export function neighbourRefusal(
  pod: PlacedPod,
  place: RoomPlace,
  world: Neighbourhood,
  isGone: (other: PlacedPod) => boolean,
): NoRoom | undefined {
  const counts = (other: PlacedPod): boolean => other !== pod && !isGone(other);
  return (
    affinityRefusal(pod, place, world, counts) ??
    antiAffinityRefusal(pod, place, world, counts) ??
    spreadRefusal(pod, place, world, counts)
  );
}

type Counts = (other: PlacedPod) => boolean;

function affinityRefusal(
  pod: PlacedPod,
  place: RoomPlace,
  world: Neighbourhood,
  counts: Counts,
): NoRoom | undefined {
  const terms = termsOf(pod);
  if (terms.length === 0) return undefined;
  const matchers = terms.map((term) => ({ term, isMatch: matcherOf(pod, term, world) }));
  const isMet = matchers.every(({ term: { topologyKey }, isMatch }) => {
    const domain = ownMember(place.labels, topologyKey);
    return (
      domain !== undefined &&
      podsIn(world, topologyKey, domain).some((each) => counts(each) && isMatch(each))
    );
  });
  if (isMet) return undefined;
  // The first pod of a group that is attracted to itself may run anywhere with these topology labels.
  const isAlone = matchers.every(({ isMatch }) =>
    world.places.every(({ pods }) => !pods.some((each) => counts(each) && isMatch(each))),
  );
  const isOwn = matchers.every(({ isMatch }) => isMatch(pod));
  const hasKeys = terms.every(
    ({ topologyKey }) => ownMember(place.labels, topologyKey) !== undefined,
  );
  return isAlone && isOwn && hasKeys ? undefined : 'no pod to which it has a required affinity';
}

function antiAffinityRefusal(
  pod: PlacedPod,
  place: RoomPlace,
  world: Neighbourhood,
  counts: Counts,
): NoRoom | undefined {
  for (const term of antiTermsOf(pod)) {
    const domain = ownMember(place.labels, term.topologyKey);
    if (domain === undefined) continue;
    const isMatch = matcherOf(pod, term, world);
    if (podsIn(world, term.topologyKey, domain).some((each) => counts(each) && isMatch(each)))
      return 'a pod to which it has a required anti-affinity';
  }
  for (const { pod: other, topologyKey, domain, isMatch } of world.repelling)
    if (ownMember(place.labels, topologyKey) === domain && isMatch(pod) && counts(other))
      return 'a pod with a required anti-affinity to it';
  return undefined;
}

function podsIn({ places }: Neighbourhood, key: string, domain: string): readonly PlacedPod[] {
  return places
    .filter(({ labels }) => ownMember(labels, key) === domain)
    .flatMap(({ pods }) => pods);
}

/** Returns a function that says whether the term of `owner` selects a pod. */
function matcherOf(
  owner: PlacedPod,
  term: PodAffinityTerm,
  { namespaces }: Pick<Neighbourhood, 'namespaces'>,
): (other: PlacedPod) => boolean {
  const { labelSelector, namespaceSelector, namespaces: named = [] } = term;
  const isSelectedPod = labelMatcher(withLabelKeys(owner, term, labelSelector));
  const isSpace = labelMatcher(namespaceSelector);
  const own = owner.metadata.namespace ?? '';
  const isOwnOnly = named.length === 0 && namespaceSelector === undefined;
  return ({ metadata: { namespace = '', labels } }) => {
    const isHere =
      (isOwnOnly && namespace === own) ||
      named.includes(namespace) ||
      isSpace(namespaces.get(namespace)?.metadata.labels);
    return isHere && isSelectedPod(labels);
  };
}

/** Returns the selector with the labels of the owner that the term names. */
function withLabelKeys(
  { metadata: { labels = {} } }: PlacedPod,
  {
    matchLabelKeys = [],
    mismatchLabelKeys = [],
  }: Pick<PodAffinityTerm, 'matchLabelKeys' | 'mismatchLabelKeys'>,
  selector: LabelSelector | undefined,
): LabelSelector | undefined {
  const more = (keys: readonly string[], operator: string) =>
    keys.flatMap((key) => {
      const value = ownMember(labels, key);
      return value === undefined ? [] : [{ key, operator, values: [value] }];
    });
  const added = [...more(matchLabelKeys, 'In'), ...more(mismatchLabelKeys, 'NotIn')];
  if (selector === undefined || added.length === 0) return selector;
  return { ...selector, matchExpressions: [...(selector.matchExpressions ?? []), ...added] };
}

function spreadRefusal(
  pod: PlacedPod,
  place: RoomPlace,
  world: Neighbourhood,
  counts: Counts,
): NoRoom | undefined {
  for (const constraint of hardConstraintsOf(pod)) {
    const { topologyKey, maxSkew, minDomains = 1 } = constraint;
    const domain = ownMember(place.labels, topologyKey);
    if (domain === undefined) return `no label ${topologyKey}, by which it must be spread`;
    const isMatch = labelMatcher(withLabelKeys(pod, constraint, constraint.labelSelector));
    const byDomain = countsByDomain(
      pod,
      constraint,
      world,
      (other) => counts(other) && isMatch(other.metadata.labels),
    );
    const fewest = byDomain.size < minDomains ? 0 : Math.min(...byDomain.values());
    const own = isMatch(pod.metadata.labels) ? 1 : 0;
    if ((byDomain.get(domain) ?? 0) + own - fewest > maxSkew)
      return `too many pods of its kind for its spread by ${topologyKey}`;
  }
  return undefined;
}

/** Counts the pods of the same namespace in each domain that the constraint looks at. */
function countsByDomain(
  pod: PlacedPod,
  { topologyKey, nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' }: SpreadConstraint,
  { places }: Neighbourhood,
  counts: Counts,
): Map<string, number> {
  const { spec = {}, metadata } = pod;
  const keys = hardConstraintsOf(pod).map((each) => each.topologyKey);
  const byDomain = new Map<string, number>();
  for (const place of places) {
    const domain = ownMember(place.labels, topologyKey);
    if (domain === undefined || keys.some((key) => ownMember(place.labels, key) === undefined))
      continue;
    if (nodeAffinityPolicy === 'Honor' && !isSelected(spec, place)) continue;
    if (nodeTaintsPolicy === 'Honor' && untoleratedTaint(pod, place) !== undefined) continue;
    const found = place.pods.filter(
      (other) =>
        other.metadata.namespace === metadata.namespace &&
        other.metadata.deletionTimestamp === undefined &&
        counts(other),
    );
    byDomain.set(domain, (byDomain.get(domain) ?? 0) + found.length);
  }
  return byDomain;
}

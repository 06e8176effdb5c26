/** Checks whether the pods of each node fit on the other nodes while it is drained. */
import { isPodOfUpgrade } from '../../drain/own-pods.ts';
import { controllerOf, DEFAULT_DRAIN, isFinished, sortPods } from '../../drain/pods.ts';
import { keyOf, namespaces, nodes, pods } from '../../kube/resources.ts';
import { counted, listed } from '../../util/phrases.ts';
import { type Asking, answer, type ReadResult } from '../asking.ts';
import type { Check } from '../context.ts';
import type { FoundBy } from '../finding.ts';
import { type PlacedPod, slimPod } from '../pods.ts';
import { neighbourhoodOf } from '../room/neighbour-rules.ts';
import { placeOf, type RoomPlace } from '../room/node-rules.ts';
import { type Fit, fitOf, type RoomFacts, sharedLack } from '../room/room.ts';
import { claims, placedVolumes, volumesOf } from '../room/volume-rules.ts';
import { undrainedNodes } from '../undrained.ts';

const MOST_REASONS = 3;
const MOST_NAMES = 8;

export const checkRoom: Check = async (context) => {
  const facts = await roomFactsOf(context);
  return facts.kind === 'unknown'
    ? [{ state: 'unknown', message: facts.why }]
    : roomFindings(facts.value, await undrainedNodes(context));
};

/** Resolves with what decides where pods may run. */
export async function roomFactsOf({ list }: Pick<Asking, 'list'>): Promise<ReadResult<RoomFacts>> {
  const [allNodes, allPods, spaces, foundClaims, foundVolumes] = await Promise.all([
    list(nodes),
    list(pods, { slim: slimPod }),
    list(namespaces),
    list(claims),
    list(placedVolumes),
  ]);
  if (allNodes.kind === 'unknown') return allNodes;
  if (allPods.kind === 'unknown') return allPods;
  if (spaces.kind === 'unknown') return spaces;
  if (foundClaims.kind === 'unknown') return foundClaims;
  if (foundVolumes.kind === 'unknown') return foundVolumes;
  const running = allPods.value.filter((pod) => !isFinished(pod)) as readonly PlacedPod[];
  const ofNode = Map.groupBy(running, ({ spec }) => spec?.nodeName ?? '');
  const places = allNodes.value.map((node) => placeOf(node, ofNode.get(node.metadata.name) ?? []));
  return answer({
    ...neighbourhoodOf(places, spaces.value),
    volumes: volumesOf(foundClaims.value, foundVolumes.value),
    waiting: running.filter(isUnschedulable),
  });
}

/** Returns true if the scheduler has said that the pod fits on no node. */
function isUnschedulable({ status }: PlacedPod): boolean {
  return (
    status?.conditions?.some(
      ({ type, status: state, reason }) =>
        type === 'PodScheduled' && state === 'False' && reason === 'Unschedulable',
    ) === true
  );
}

interface Judged {
  readonly pod: PlacedPod;
  readonly place: RoomPlace;
  readonly fit: Fit;
}

/** Returns the findings about the pods that a drain of their node would evict. The pods of undrained nodes stay. */
export function roomFindings(facts: RoomFacts, undrained: ReadonlySet<string>): FoundBy[] {
  const drained = facts.places.filter(({ name }) => !undrained.has(name));
  const judged = drained.flatMap((place) =>
    movedPods(place).map((pod): Judged => ({ pod, place, fit: fitOf(pod, place, facts) })),
  );
  const stuck = judged.filter(({ fit }) => fit.kind === 'nowhere');
  const findings = [...groupsOf(stuck)].map(([, group]) => nowhereFinding(group, facts));
  if (facts.waiting.length > 0) findings.unshift(waitingFinding(facts.waiting));
  const preempting = judged.filter(({ fit }) => fit.kind === 'preempts');
  if (preempting.length > 0) findings.push(preemptsFinding(preempting));
  findings.push(...unknownFindings(judged), ...sharedFindings(facts, judged));
  if (findings.length > 0) return findings;
  return [
    {
      state: 'ok',
      message: `each of the ${counted(judged.length, 'pod')} that drains would evict fits on another node`,
    },
  ];
}

/** Returns the pods that a drain evicts, and that a controller creates again. Pods of upgrades end before. */
export function movedPods({ pods: here }: RoomPlace): PlacedPod[] {
  const facts = { isOrphaned: () => false, ruleFor: () => undefined };
  const { evict } = sortPods(here, DEFAULT_DRAIN, facts);
  return (evict as PlacedPod[]).filter(
    (pod) => controllerOf(pod) !== undefined && !isPodOfUpgrade(pod),
  );
}

/** Groups pods with the same controller and the same refusals, so that one finding names all of them. */
function groupsOf(judged: readonly Judged[]): Map<string, Judged[]> {
  return Map.groupBy(judged, ({ pod, fit }) => {
    const owner = controllerOf(pod);
    const refusals = fit.kind === 'nowhere' ? [...fit.refusals.keys()].toSorted().join() : '';
    return `${pod.metadata.namespace} ${owner?.kind} ${owner?.name} ${refusals}`;
  });
}

function nowhereFinding(group: readonly Judged[], { places }: RoomFacts): FoundBy {
  const [{ fit }] = group as readonly [Judged];
  const refusals = fit.kind === 'nowhere' ? [...fit.refusals] : [];
  const others = places.length - 1;
  const reasons = refusals
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, MOST_REASONS)
    .map(([reason, count]) => `${counted(count, 'node')} with ${reason}`);
  const why =
    others === 0
      ? 'there is no other node'
      : `of ${counted(others, 'other node')}: ${reasons.join(', ')}`;
  return {
    state: 'warning',
    object: `Pod ${listed(group.map(({ pod }) => keyOf(pod)))}`,
    message: `while its node (${listed([...new Set(group.map(({ place }) => place.name))])}) is drained, it fits on no other node, and waits until its node is back: ${why}`,
    cure: 'add room or another node for it, or accept that it is down meanwhile',
  };
}

function waitingFinding(waiting: readonly PlacedPod[]): FoundBy {
  const names = waiting.map((pod) => keyOf(pod));
  return {
    state: 'warning',
    object: `Pod ${listed(names, MOST_NAMES)}`,
    message: 'it waits for a node already: the scheduler finds none where it fits',
    cure: 'read its Events; add room, or uncordon nodes that an earlier upgrade left',
  };
}

function preemptsFinding(judged: readonly Judged[]): FoundBy {
  return {
    state: 'warning',
    object: `Pod ${listed(judged.map(({ pod }) => keyOf(pod)))}`,
    message:
      'while its node is drained, it fits only if the scheduler evicts pods of lower priority elsewhere',
    cure: 'add room, or accept that pods of lower priority are down meanwhile',
  };
}

function unknownFindings(judged: readonly Judged[]): FoundBy[] {
  const unknown = judged.flatMap(({ pod, fit }) =>
    fit.kind === 'unknown' ? [{ pod, rule: fit.rule }] : [],
  );
  return [...Map.groupBy(unknown, ({ rule }) => rule)].map(([rule, group]) => ({
    state: 'unknown',
    object: `Pod ${listed(group.map(({ pod }) => keyOf(pod)))}`,
    message: `whether it fits on another node: ${rule}`,
  }));
}

/** Finds nodes whose pods fit one by one, but not together. */
function sharedFindings(facts: RoomFacts, judged: readonly Judged[]): FoundBy[] {
  const fitting = judged.filter(({ fit }) => fit.kind === 'fits');
  return [...Map.groupBy(fitting, ({ place }) => place)].flatMap(([place, group]): FoundBy[] => {
    const lack = sharedLack(
      group.map(({ pod }) => pod),
      place,
      facts,
    );
    if (lack === undefined) return [];
    return [
      {
        state: 'warning',
        object: `Node ${place.name}`,
        message: `while it is drained, its ${counted(group.length, 'pod')} do not fit on the other nodes together: these have ${lack}`,
        cure: 'add room, or accept that some of these pods are down meanwhile',
      },
    ];
  });
}

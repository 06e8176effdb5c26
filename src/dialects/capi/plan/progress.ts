/**
 * Describes the progress of an update. Cluster API may send its request to any replica. So each replica assesses the
 * update as the leader does, from objects that it has just read.
 */

import type { Machine } from '../../../api/capi/machine.ts';
import { isDrained } from '../../../drain/drain-node.ts';
import { drainPreviewer } from '../../../drain/drain-preview.ts';
import { settle } from '../../../engine/assess/advance.ts';
import { type Assessment, assess } from '../../../engine/assess/assess.ts';
import { needsOf } from '../../../engine/assess/needs.ts';
import { unstartedTargets } from '../../../engine/assess/unstarted.ts';
import type { Endpoint, World } from '../../../engine/contract/world.ts';
import { explain } from '../../../engine/explain/explain.ts';
import { answered, UNASKED } from '../../../engine/model/asked.ts';
import type { Wait } from '../../../engine/model/decision.ts';
import { because, isUnasked, type Reason } from '../../../engine/model/reasons.ts';
import { isFinal, type Rollout, targetsIn } from '../../../engine/model/rollout.ts';
import type { ClusterFacts, EndpointHealth, Snapshot } from '../../../engine/model/snapshot.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { reasonAbout } from '../../../engine/reasons/about-target.ts';
import { awaitedRetries } from '../../../engine/schedule/awaited-retries.ts';
import { gather, type Known } from '../../../engine/snapshot/gather.ts';
import { freshWorld, OwnWrites, viewsOf } from '../../../engine/snapshot/world.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { CONTROL_PLANE } from '../../../kube/control-plane-label.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import type { Clock } from '../../../util/clock.ts';
import { listed } from '../../../util/phrases.ts';
import { endpointOf, isController } from '../../shared/node-endpoints.ts';
import { capi } from './capi-dialect.ts';
import { groupOf } from './machine-groups.ts';
import { updateOn } from './machine-update.ts';
import { withRulesOfMachines } from './policy-rules.ts';

export interface NodeCluster {
  readonly workload: KubeClient;
  /**
   * Returns the Node from the last event of this process's watch. Returns undefined if the watch has no such Node or
   * has not started yet.
   */
  readonly seenNode: (name: string) => Node | undefined;
  /** Returns all Nodes from this process's watch. */
  readonly seenNodes: () => readonly Node[];
  readonly policyFor: (node: Node) => RolloutPolicy;
  /** Returns why no leader works on this cluster; undefined while a leader works on it. */
  readonly whyIdle: () => string | undefined;
  readonly askApiServers: (
    endpoints: readonly Endpoint[],
    abort: AbortSignal,
  ) => Promise<readonly EndpointHealth[]>;
}

/**
 * Returns the cluster of a Machine. The Machine must come from the API, not from a call. Throws REFIT_UNREACHABLE if
 * Refit cannot send requests to the cluster at the moment.
 */
export type ClusterOf = (machine: Machine) => NodeCluster;

export interface ProgressParts extends NodeCluster {
  readonly abort: AbortSignal;
  readonly clock: Clock;
}

/** The progress of an update. Every replica can compute it. */
export interface Progress {
  readonly isOver: boolean;
  readonly failed: boolean;
  /** The reason why the update ended. If the update has not ended, the event for which it waits. */
  readonly message: string;
  /**
   * True while the update waits for something that its own node cannot change: an action of a person, a time, a budget
   * or another node.
   */
  readonly waitsForOthers: boolean;
  /** False while the request can still be withdrawn. */
  readonly isBegun: boolean;
  /** The milliseconds since the last change was recorded. */
  readonly ageMs: number;
}

/**
 * Computes the progress of the update of the Node. It uses no state of this process, so any replica can answer. `others`
 * are the other Nodes, if the caller knows them; otherwise they are read if they matter.
 */
export async function progressOf(
  parts: ProgressParts,
  node: Node,
  others?: readonly Node[],
): Promise<Progress> {
  const { name } = node.metadata;
  const scene = await sceneOf(parts, node, others);
  const snapshot = await look(parts, scene, name);
  const { policy } = scene;
  const { rollout, targets } = snapshot;
  const wait = await waitOf(parts, snapshot, policy, name);
  const idle = parts.whyIdle();
  const next = wait?.reason.message ?? stopOf(rollout) ?? `node ${name} is about to start`;
  const message = idle === undefined ? next : `${next}; ${idle}`;
  const observed = targets.get(name)?.observation.kind;
  const isSent = observed !== 'none';
  const target = rollout.stages[0]?.targets.find((each) => each.name === name);
  const state = target?.state;
  // The policy tries the update again after a pause. Until then, no work runs on the node.
  const isResting =
    isRetried(scene, snapshot, name) &&
    state === 'failed' &&
    observed !== 'sent' &&
    observed !== 'working';
  const end = endOf(scene, snapshot, name);
  const isOver = end !== undefined && !isResting;
  const told = isOver ? end.message : reasonToWait(scene, rollout);
  return {
    isOver,
    failed: end?.failed !== false,
    message: [told, ...(told === undefined || isResting ? [message] : [])]
      .filter((part) => part !== undefined)
      .join('; '),
    waitsForOthers:
      idle !== undefined ||
      wait?.reason.code === 'DrainBlocked' ||
      isResting ||
      (!isSent && (isGate(wait) || isFinal(rollout))),
    isBegun: !isResting && (isSent || state !== 'pending'),
    ageMs: parts.clock.now() - Date.parse(target?.since ?? ''),
  };
}

/**
 * Resolves with the reason why the update of the Node would not start now, apart from what the drain and the API servers
 * say; undefined if nothing keeps it from starting. The Node has the request that it would get.
 */
export async function waitBeforeStart(
  parts: ProgressParts,
  node: Node,
): Promise<Reason | undefined> {
  const { plan, policy, world } = await sceneOf(parts, node);
  const now = parts.clock.now();
  const known = { isReadOnly: true, controlPlane: answered([]) } as const;
  const snapshot = gather(capi, plan, world, now, known);
  const settled = settle(assess(snapshot, policy, now));
  const { rollout } = settled.snapshot;
  if (isFinal(rollout))
    return because('FinishingInFlight', `its rollout has ended: ${causeOfEnd(rollout)}`);
  const wait = waitOfTarget(settled, node.metadata.name);
  return isGate(wait) ? wait?.reason : undefined;
}

/**
 * Returns why an update that has not ended waits, if its rollout says so. The reason of a plan with several Machines may be
 * about another one.
 */
function reasonToWait({ plan }: Scene, { reason }: Rollout): string | undefined {
  return updateOn(plan)?.owner === undefined ? reason?.message : undefined;
}

/** Returns why nothing starts after the end of the rollout; undefined if the rollout goes on. */
function stopOf(rollout: Rollout): string | undefined {
  if (!isFinal(rollout)) return undefined;
  const { kind, name } = rollout.source;
  const cause = causeOfEnd(rollout);
  return `${kind} ${name} starts no further Machine: ${cause}; to go on, run refit retry for what failed, or for the plan capi/${name}`;
}

/** Returns why a rollout that has ended did so. */
function causeOfEnd(rollout: Rollout): string {
  const failed = targetsIn(rollout, 'failed').map((target) => target.name);
  return rollout.reason?.message ?? `these nodes failed: ${listed(failed)}`;
}

/** Returns how the update of the Machine ended; undefined if it has not ended. */
function endOf(
  { plan }: Scene,
  { rollout }: Snapshot,
  name: string,
): { readonly failed: boolean; readonly message: string | undefined } | undefined {
  const message = rollout.reason?.message;
  if (updateOn(plan)?.owner === undefined)
    return isFinal(rollout) ? { failed: rollout.phase !== 'done', message } : undefined;
  const target = rollout.stages[0]?.targets.find((each) => each.name === name);
  if (target === undefined || target.state === 'pending' || target.state === 'intended')
    return undefined;
  if (target.state === 'done') return { failed: false, message: undefined };
  const { failure } = target;
  return { failed: true, message: failure ? reasonAbout(name, failure).message : message };
}

/** Returns true if the leader tries the failed update again. */
function isRetried({ plan, policy }: Scene, snapshot: Snapshot, name: string): boolean {
  if (isFinal(snapshot.rollout)) return false;
  if (updateOn(plan)?.owner === undefined) return true;
  return awaitedRetries(snapshot, policy).some(({ target }) => target.name === name);
}

/** What the progress of one update is computed from. */
interface Scene {
  /** The Node that represents the plan. */
  readonly plan: Node;
  readonly policy: RolloutPolicy;
  readonly world: World;
}

/** Reads the other Nodes if the plan or a gate depends on them. */
async function sceneOf(parts: ProgressParts, node: Node, others?: readonly Node[]): Promise<Scene> {
  const { workload, abort } = parts;
  const isOfOwner = updateOn(node)?.owner !== undefined;
  // Without an owner, the other Nodes matter for a controller, or with a limit for unavailable nodes.
  const matter =
    isOfOwner || parts.policyFor(node).maxUnavailable !== undefined || isController(node);
  const read = async () => others ?? (await listNodes(workload, { abort })).items;
  const all = matter ? await read() : [node];
  const known = all.map((each) => (each.metadata.name === node.metadata.name ? node : each));
  const [first] = groupOf(known, node)?.chosen ?? [];
  const plan = first?.node ?? node;
  const world = worldOf(node, known);
  const found = withRulesOfMachines(plan, parts.policyFor(plan), world);
  // A drain that has missed its deadline still counts as running here, because only the leader may
  // end it.
  return { plan, world, policy: { ...found, drain: { ...found.drain, onDeadline: 'wait' } } };
}

/** Takes a snapshot of the update. It assumes that all API servers are ready, because only the leader probes them regularly. */
async function look(
  { workload, clock, abort }: ProgressParts,
  { plan, policy, world }: Scene,
  name: string,
): Promise<Snapshot> {
  const now = clock.now();
  const seeing = (known: Known): Snapshot =>
    gather(capi, plan, world, now, { isReadOnly: true, controlPlane: answered([]), ...known });
  const snapshot = seeing({ drainPreviews: new Map() });
  const { options } = policy.drain;
  const observation = snapshot.targets.get(name)?.observation;
  const asks = observation?.kind === 'working' && observation.waitsFor === 'drain';
  if (asks && world.get(nodes, name)?.spec?.unschedulable === true) {
    const progress = await drainPreviewer(workload, abort).during(name, options, now);
    const kind = isDrained(progress) ? 'drained' : 'draining';
    const drained = { kind, since: now, ...progress } as const;
    return seeing({ drainOf: (node) => (node === name ? drained : undefined) });
  }
  const { probes } = needsOf(settle(assess(snapshot, policy, now)));
  const isAsked = probes.some((probe) => probe.kind === 'drain-preview' && probe.node === name);
  if (!isAsked) return snapshot;
  return seeing({
    drainPreviews: new Map([
      [name, answered(await drainPreviewer(workload, abort).ahead(name, options))],
    ]),
  });
}

/** Returns a world that contains only Nodes. `all` are the Nodes that gates depend on. */
export function worldOf({ metadata: { resourceVersion } }: Node, all: readonly Node[]): World {
  const byName = new Map(all.map((node) => [node.metadata.name, node]));
  const view = {
    get: (name: string) => byName.get(name),
    list: () => all,
    resourceVersion: () => resourceVersion,
  };
  return freshWorld(viewsOf([[nodes, view]]), new OwnWrites());
}

const isGate = (wait?: Pick<Wait, 'gate'>): boolean =>
  wait !== undefined && wait.gate !== 'intended';

/**
 * Resolves with the reason why the update waits; undefined if it does not wait. Probes the API servers only if no other
 * gate makes the update wait.
 */
async function waitOf(
  parts: ProgressParts,
  snapshot: Snapshot,
  policy: RolloutPolicy,
  name: string,
): Promise<Pick<Wait, 'gate' | 'reason'> | undefined> {
  const { workload, askApiServers, clock, abort } = parts;
  const waitIn = (seen: Snapshot) => waitOfTarget(settle(assess(seen, policy, clock.now())), name);
  const wait = waitIn(snapshot);
  const withHealth = (controlPlane: ClusterFacts['controlPlane']): Snapshot => ({
    ...snapshot,
    cluster: { ...snapshot.cluster, controlPlane },
  });
  const unasked = waitIn(withHealth(UNASKED));
  if (isGate(wait) || !unasked || !isUnasked(unasked.reason)) return wait;
  const { items } = await listNodes(workload, { labelSelector: CONTROL_PLANE, abort });
  const health = await askApiServers(items.map(endpointOf), abort);
  return waitIn(withHealth(answered(health)));
}

/** Returns the wait of the target. Targets with the same wait share one wait in the explanation. */
function waitOfTarget(
  assessment: Assessment,
  name: string,
): Pick<Wait, 'gate' | 'reason'> | undefined {
  const { waits } = explain(assessment);
  const { waiting } = unstartedTargets(assessment);
  return (
    waits.find(({ target }) => target === name) ??
    waiting.find(({ target }) => target.name === name) ??
    // A wait of the whole plan is found with its first target.
    waiting.find(({ ofRollout }) => ofRollout === true) ??
    waits.find(({ target }) => target === undefined)
  );
}

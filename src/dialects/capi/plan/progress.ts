/**
 * Describes the progress of an update. Cluster API may send its request to any replica. So each replica assesses the
 * update as the leader does, from objects that it has just read.
 */

import type { Machine } from '../../../api/capi/machine.ts';
import { isDrained } from '../../../drain/drain-node.ts';
import { drainPreviewer } from '../../../drain/drain-preview.ts';
import { settle } from '../../../engine/assess/advance.ts';
import { assess } from '../../../engine/assess/assess.ts';
import { needsOf } from '../../../engine/assess/needs.ts';
import type { Endpoint, World } from '../../../engine/contract/world.ts';
import { explain } from '../../../engine/explain/explain.ts';
import { answered, UNASKED } from '../../../engine/model/asked.ts';
import type { Wait } from '../../../engine/model/decision.ts';
import { isUnasked } from '../../../engine/model/reasons.ts';
import { isFinal } from '../../../engine/model/rollout.ts';
import type { ClusterFacts, EndpointHealth, Snapshot } from '../../../engine/model/snapshot.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { gather, type Known } from '../../../engine/snapshot/gather.ts';
import { freshWorld, OwnWrites, viewsOf } from '../../../engine/snapshot/world.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { CONTROL_PLANE } from '../../../kube/control-plane-label.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import type { Clock } from '../../../util/clock.ts';
import { endpointOf, isController } from '../../shared/node-endpoints.ts';
import { capi } from './capi-dialect.ts';

export interface NodeCluster {
  readonly workload: KubeClient;
  /**
   * Returns the Node from the last event of this process's watch. Returns undefined if the watch has no such Node or
   * has not started yet.
   */
  readonly seenNode: (name: string) => Node | undefined;
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

/** Computes the progress of the update of the Node. It uses no state of this process, so any replica can answer. */
export async function progressOf(parts: ProgressParts, node: Node): Promise<Progress> {
  const found = parts.policyFor(node);
  // A drain that has missed its deadline still counts as running here, because only the leader may
  // end it.
  const policy: RolloutPolicy = { ...found, drain: { ...found.drain, onDeadline: 'wait' } };
  const snapshot = await look(parts, node, policy);
  const { rollout, targets } = snapshot;
  const { reason } = rollout;
  const { name } = node.metadata;
  const wait = await waitOf(parts, snapshot, policy);
  const idle = parts.whyIdle();
  const next = wait?.reason.message ?? `node ${name} is about to start`;
  const message = idle === undefined ? next : `${next}; ${idle}`;
  const observed = targets.get(name)?.observation.kind;
  const isSent = observed !== 'none';
  const state = rollout.stages[0]?.targets[0]?.state;
  // The policy tries the update again after a pause. Until then, no work runs on the node.
  const isResting =
    !isFinal(rollout) && state === 'failed' && observed !== 'sent' && observed !== 'working';
  return {
    isOver: isFinal(rollout),
    failed: rollout.phase !== 'done',
    message: [reason?.message, ...(reason === undefined || isResting ? [message] : [])]
      .filter((part) => part !== undefined)
      .join('; '),
    waitsForOthers:
      idle !== undefined ||
      wait?.reason.code === 'DrainBlocked' ||
      isResting ||
      (!isSent && isGate(wait)),
    isBegun: !isResting && (isSent || state !== 'pending'),
    ageMs: parts.clock.now() - Date.parse(rollout.stages[0]?.targets[0]?.since ?? ''),
  };
}

/** Takes a snapshot of the update. It assumes that all API servers are ready, because only the leader probes them regularly. */
async function look(
  { workload, clock, abort }: ProgressParts,
  node: Node,
  policy: RolloutPolicy,
): Promise<Snapshot> {
  const { name } = node.metadata;
  // The other Nodes are listed only if a gate depends on them: for a controller, or with a limit for unavailable nodes.
  const isAlone = policy.maxUnavailable === undefined && !isController(node);
  const all = isAlone ? [node] : (await listNodes(workload, { abort })).items;
  const world = worldOf(node, all);
  const now = clock.now();
  const seeing = (known: Known): Snapshot =>
    gather(capi, node, world, now, { isReadOnly: true, controlPlane: answered([]), ...known });
  const snapshot = seeing({ drainPreviews: new Map() });
  const { options } = policy.drain;
  const observation = snapshot.targets.get(name)?.observation;
  const asks = observation?.kind === 'working' && observation.waitsFor === 'drain';
  if (asks && node.spec?.unschedulable === true) {
    const progress = await drainPreviewer(workload, abort).during(name, options, now);
    const kind = isDrained(progress) ? 'drained' : 'draining';
    return seeing({ drainOf: () => ({ kind, since: now, ...progress }) });
  }
  const { probes } = needsOf(settle(assess(snapshot, policy, now)));
  if (!probes.some(({ kind }) => kind === 'drain-preview')) return snapshot;
  return seeing({
    drainPreviews: new Map([
      [name, answered(await drainPreviewer(workload, abort).ahead(name, options))],
    ]),
  });
}

/** Returns a world that contains only Nodes. `all` are the Nodes that gates depend on. */
function worldOf(node: Node, all: readonly Node[]): World {
  const { resourceVersion } = node.metadata;
  const view = { get: () => node, list: () => all, resourceVersion: () => resourceVersion };
  return freshWorld(viewsOf([[nodes, view]]), new OwnWrites());
}

const isGate = (wait?: Wait): boolean => wait !== undefined && wait.gate !== 'intended';

/**
 * Resolves with the reason why the update waits; undefined if it does not wait. Probes the API servers only if no other
 * gate makes the update wait.
 */
async function waitOf(parts: ProgressParts, snapshot: Snapshot, policy: RolloutPolicy) {
  const { workload, askApiServers, clock, abort } = parts;
  const waitIn = (seen: Snapshot): Wait | undefined =>
    explain(settle(assess(seen, policy, clock.now()))).waits[0];
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

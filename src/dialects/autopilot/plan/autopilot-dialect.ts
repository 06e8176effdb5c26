/** The dialect of k0s Autopilot: it gives the engine access to the Plans, nodes and agents of k0s. */

import { type Plan, plans } from '../../../api/autopilot/plan.ts';
import { originOf } from '../../../api/autopilot/plan-origin.ts';
import { statusShards } from '../../../api/refit/status-shard.ts';
import type { Dialect } from '../../../engine/contract/dialect.ts';
import type { RecordedRun } from '../../../engine/model/runs.ts';
import { withPlanWindows } from '../../../engine/policy/plan-windows.ts';
import { isRelevant } from '../../../engine/snapshot/predicates.ts';
import { type KubeObject, kubeletVersionOf, type Node } from '../../../kube/resources.ts';
import { trimNode } from '../../../kube/trimmed.ts';
import { agentOf } from '../../../signal/agent-presence.ts';
import { decodeSignal, provenVersion } from '../../../signal/annotations.ts';
import { claimOn, signallerOf } from '../../../signal/at-work.ts';
import {
  type ControlNode,
  controlNodes,
  nodeNameOf,
  ROLLOUT_ANNOTATION,
} from '../../../signal/names.ts';
import { K0S_MOST_BEHIND } from '../../../versions/k0s-rules.ts';
import { isOlder, mayBePartOf } from '../../../versions/release-parts.ts';
import { occupantOf } from '../../shared/annotation-signal.ts';
import { hostRefusal } from '../../shared/host-refusals.ts';
import { endpointOf } from '../../shared/node-endpoints.ts';
import { orphanedPlans } from './autopilot-orphaned-work.ts';
import { askedOf, drainDelegation, foreignWork, OBJECTS, signal } from './autopilot-signal.ts';
import { recordedRunIn } from './recorded-run.ts';
import { preconditions } from './removed-apis.ts';
import { planBackOf } from './roll-back-by-leader.ts';
import { joinedTargets, project, resolve } from './rollout.ts';
import { withoutCounts, withoutShards } from './status-shards/merge.ts';
import { shards } from './status-shards/spread.ts';
import { leftOut, meantBy } from './target-names.ts';

export const autopilot: Dialect<Plan> = {
  name: 'autopilot',
  plans,
  statusRecord: { hasConditions: false },
  sharding: shards,
  reruns: { recordOf, withoutRecord, askedOf },
  rollBack: { planBack: planBackOf },
  watched: [
    {
      resource: OBJECTS.controller,
      isRelevant: (before, after) =>
        isRelevant(before, after) || versionOf(before) !== versionOf(after),
    },
    { resource: OBJECTS.worker, isRelevant, transform: trimNode },
    // A watch may deliver a Plan before its StatusShards, so each StatusShard that arrives causes a new turn.
    { resource: statusShards, optional: true, isRelevant: () => true },
  ],
  resolve,
  project,
  joinedTargets,
  recordsSkips: true,
  hasComponentLeases: true,
  ordersRetries: 'always',
  objectOf: ({ role }, { name }, world) => world.get(OBJECTS[role], name),
  endpoints: (world) =>
    world
      .list(controlNodes)
      .map((node) => ({ ...endpointOf(node), version: node.status?.k0sVersion })),
  preconditions: { unmet: preconditions },
  planRules: { apply: withPlanWindows },
  versions: {
    isBehind: (object, { version }) => isOlder(versionOf(object), version),
    skewRules: { versionOf: exactVersionOf, runs, mostBehind: K0S_MOST_BEHIND },
  },
  agents: { of: agentOf, unfitFor: hostRefusal },
  names: { meantBy: (name, { role }, world) => meantBy(name, role, world) },
  reporting: { warnings: leftOut, updateConfigOf: (plan) => originOf(plan)?.config },
  foreignWork,
  nodeSharing: {
    // The name of a controller's Node may differ from the name of its ControlNode.
    occupantOf: (world, target, plan) =>
      occupantOf(
        world,
        { ...target, name: nodeNameOf(world.get(controlNodes, target.name)) ?? target.name },
        plan,
      ),
    claims: {
      needOf: () => 'with-limit',
      isAtWork: (world, node) => world.list(controlNodes).some((each) => isAtWorkOn(node, each)),
    },
  },
  drainDelegation,
  nodeRollouts: { namespace: 'k0s-autopilot' },
  orphanedWork: { plans: orphanedPlans },
  signal,
};

/**
 * Returns true if the controller runs on the Node, and works on a signal of the plan that has claimed the Node. The
 * signal of a controller is an annotation of its ControlNode.
 */
function isAtWorkOn(node: Node, controller: ControlNode): boolean {
  const uid = claimOn(node)?.split('/').at(-1);
  const isOfClaim =
    controller.metadata.annotations?.[ROLLOUT_ANNOTATION]?.startsWith(`${uid}/`) === true;
  return (
    isOfClaim &&
    nodeNameOf(controller) === node.metadata.name &&
    signallerOf(controller) !== undefined
  );
}

/**
 * Returns true if the object proves that its node runs exactly the build `version`. A kubelet reports only the release,
 * but the last completed update of the node's agent contains the build.
 */
function runs(object: KubeObject, version: string): boolean {
  const found = versionOf(object);
  if (found === undefined || found === version) return found === version;
  const { command, status } = decodeSignal(object.metadata.annotations) ?? {};
  const isLast =
    command?.kind === 'k0supdate' && command.version === version && status?.status === 'Completed';
  return isLast && mayBePartOf(found, version);
}

/**
 * Returns the version with its build, if the agent proved which build of the release runs that the kubelet reports;
 * otherwise the reported version.
 */
function exactVersionOf(object: KubeObject): string | undefined {
  const found = versionOf(object);
  const proven = provenVersion(object.metadata.annotations);
  return found !== undefined && proven !== undefined && mayBePartOf(found, proven) ? proven : found;
}

function versionOf(object: KubeObject): string | undefined {
  return (object as ControlNode).status?.k0sVersion ?? kubeletVersionOf(object);
}

function recordOf(plan: Plan): RecordedRun | undefined {
  return recordedRunIn(withoutShards(plan));
}

function withoutRecord(plan: Plan): Plan {
  const { status: _, ...rest } = withoutCounts(plan);
  return rest;
}

/** The dialect of k0s Autopilot: its Plans as rollouts of the engine. */
import { type Plan, plans } from '../../api/autopilot/plan.ts';
import { statusShards } from '../../api/refit/status-shard.ts';
import type { Dialect } from '../../engine/dialect.ts';
import { isRelevant, trimNode } from '../../engine/observe/predicates.ts';
import { withPlanWindows } from '../../engine/policy/plan-windows.ts';
import { nodes } from '../../kube/resources.ts';
import type { KubeObject, Node } from '../../kube/types.ts';
import { agentOf } from '../../signal/agent-presence.ts';
import { decodeSignal } from '../../signal/annotations.ts';
import { type ControlNode, controlNodes } from '../../signal/names.ts';
import { mayBePartOf } from '../../versions/release-parts.ts';
import { occupantOf } from '../annotation-signal.ts';
import { orphanedPlans } from './orphaned-work.ts';
import { project } from './project.ts';
import { preconditions } from './removed-apis.ts';
import { resolve } from './resolve.ts';
import { drainDelegation, foreignWork, OBJECTS, signal } from './signal.ts';
import { shards } from './status-shards/spread.ts';

export const autopilot: Dialect<Plan> = {
  name: 'autopilot',
  plans,
  statusRecord: { conditionsInAnnotation: true },
  shards,
  watched: [
    {
      resource: OBJECTS.controller,
      isRelevant: (before, after) => isRelevant(before, after) || versionOf(before) !== versionOf(after),
    },
    { resource: OBJECTS.worker, isRelevant, transform: trimNode },
    // A Plan may arrive before its StatusShards: each of those makes a new decision necessary.
    { resource: statusShards, optional: true, isRelevant: () => true },
  ],
  resolve,
  project,
  objectOf: ({ role }, { name }, world) => world.get(OBJECTS[role], name),
  endpoints: (world) =>
    world.list(controlNodes).map(({ metadata, status }) => ({
      name: metadata.name,
      host: status?.addresses?.find(({ type }) => type === 'InternalIP')?.address,
      version: status?.k0sVersion,
    })),
  preconditions: { unmet: preconditions },
  planRules: { apply: withPlanWindows },
  versions: { of: versionOf, runs },
  agents: { of: agentOf },
  foreignWork,
  occupantOf,
  drainDelegation,
  fleet: { nodes: (world) => world.list(nodes) },
  orphanedWork: { plans: orphanedPlans },
  signal,
};

/** A kubelet does not say which build of a release it is, but the last update that its agent completed does. */
function runs(object: KubeObject, version: string): boolean {
  const found = versionOf(object);
  if (found === undefined || found === version) return found === version;
  const { command, status } = decodeSignal(object.metadata.annotations) ?? {};
  const isLast = command?.kind === 'k0supdate' && command.version === version && status?.status === 'Completed';
  return isLast && mayBePartOf(found, version);
}

function versionOf(object: KubeObject): string | undefined {
  return (object as ControlNode).status?.k0sVersion ?? (object as Node).status?.nodeInfo?.kubeletVersion;
}

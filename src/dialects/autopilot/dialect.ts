/** Owns the k0s Autopilot front door: its Plans as campaigns of the engine. */
import { type Plan, plans } from '../../api/autopilot/plan.ts';
import { targetLedgers } from '../../api/refit/target-ledger.ts';
import type { Dialect } from '../../engine/dialect.ts';
import { keptOfNode } from '../../engine/kept.ts';
import { matters } from '../../engine/relevance.ts';
import { nodes } from '../../kube/resources.ts';
import type { KubeObject, Node } from '../../kube/types.ts';
import { type ControlNode, controlNodes } from '../../signal/names.ts';
import { care } from './care.ts';
import { OBJECTS } from './discovery.ts';
import { ledgers } from './ledgers/split.ts';
import { orphans } from './orphans.ts';
import { preconditions } from './preconditions.ts';
import { project } from './project.ts';
import { resolve } from './resolve.ts';
import { signal, strangers } from './signal.ts';

export const autopilot: Dialect<Plan> = {
  name: 'autopilot',
  plans,
  recordedIn: 'status',
  ledgers,
  watched: [
    {
      resource: OBJECTS.controller,
      matters: (before, after) => matters(before, after) || versionOf(before) !== versionOf(after),
    },
    { resource: OBJECTS.worker, matters, keep: keptOfNode },
    // The news of a plan may come before that of its ledgers: whoever looked in between has to look again.
    { resource: targetLedgers, optional: true, matters: () => true },
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
  judgesVersions: true,
  conditionsInAnnotation: true,
  preconditions,
  versionOf,
  others: strangers,
  care,
  fleet: (world) => world.list(nodes),
  orphans,
  signal,
};

function versionOf(object: KubeObject): string | undefined {
  return (object as ControlNode).status?.k0sVersion ?? (object as Node).status?.nodeInfo?.kubeletVersion;
}

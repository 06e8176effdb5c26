/** Finds PreferNoSchedule taints of replaced requests, which no rollout cleans up any more. */
import { pendingOwner } from '../../drain/cordon.ts';
import type { OrphanedPlan, World } from '../../engine/dialect.ts';
import { pendingOwnerOf } from '../../engine/model/cordon-owners.ts';
import { because } from '../../engine/model/reasons.ts';
import { apiVersionOf, nodes } from '../../kube/resources.ts';
import type { Node } from '../../kube/types.ts';
import { type ConfigMap, configMaps, PLACE } from './plan-object.ts';

const { kind } = configMaps;
const OWN = pendingOwnerOf({ kind, uid: '' });

/** Leaves cordons alone: a host that failed halfway stays cordoned. */
export function orphanedPlans(world: World, plans: readonly ConfigMap[]): OrphanedPlan<ConfigMap>[] {
  return world.list(nodes).flatMap((node) => {
    const owner = pendingOwner(node);
    // A taint without a uid is from an earlier version of Refit; a current request sets its own.
    if (owner === '') return [orphanedPlan(node, owner)];
    const isPast = owner?.startsWith(OWN) === true && plans.every(({ metadata }) => owner !== OWN + metadata.uid);
    return isPast ? [orphanedPlan(node, owner.slice(OWN.length))] : [];
  });
}

/** The target key is one that no rollout uses, so it never matches work on the host. */
function orphanedPlan({ metadata: { name } }: Node, uid: string): OrphanedPlan<ConfigMap> {
  const source = { apiVersion: apiVersionOf(configMaps), kind, name: PLACE.name, uid, created: '' };
  const stage = {
    id: 'left',
    command: 0,
    role: 'worker',
    maxInFlight: 1,
    version: '',
    forced: false,
    targets: [{ key: `left/${name}`, name, state: 'pending', since: '' }],
  } as const;
  const reason = because('PlanGone', 'its plan was deleted');
  return {
    rollout: { source, id: '', phase: 'failed', blocked: false, reason, stages: [stage], problems: [] },
    plan: { metadata: { ...PLACE, uid } },
  };
}

/** Owns finding the soft taints of requests that have made way for another: no campaign of its own looks for them any more. */
import { pendingOwner } from '../../drain/cordon.ts';
import { pendingOwnerOf } from '../../engine/cordons.ts';
import type { Orphan, World } from '../../engine/dialect.ts';
import { because } from '../../engine/reasons.ts';
import { apiVersionOf, nodes } from '../../kube/resources.ts';
import type { Node } from '../../kube/types.ts';
import { type ConfigMap, configMaps, PLACE } from './plan-object.ts';

const { kind } = configMaps;
const OWN = pendingOwnerOf({ kind, uid: '' });

/** Not cordons: a host that failed in the middle stays cordoned. */
export function orphans(world: World, plans: readonly ConfigMap[]): Orphan<ConfigMap>[] {
  return world.list(nodes).flatMap((node) => {
    const owner = pendingOwner(node);
    // One that names nobody is an earlier version's: a request that still needs it sets its own.
    if (owner === '') return [orphan(node, owner)];
    const isPast = owner?.startsWith(OWN) === true && plans.every(({ metadata }) => owner !== OWN + metadata.uid);
    return isPast ? [orphan(node, owner.slice(OWN.length))] : [];
  });
}

/** A target of no name that any campaign gives: what is at work on the host is another's. */
function orphan({ metadata: { name } }: Node, uid: string): Orphan<ConfigMap> {
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
    campaign: { source, id: '', phase: 'failed', blocked: false, reason, stages: [stage], problems: [] },
    plan: { metadata: { ...PLACE, uid } },
  };
}

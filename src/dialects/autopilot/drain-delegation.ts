/** Owns for which targets our leader cordons, drains and uncordons: as k0s decides it, so that exactly one of them does. */
import type { DrainDelegation, World } from '../../engine/dialect.ts';
import type { Stage, Target } from '../../engine/model/recorded.ts';
import { leases, nodes } from '../../kube/resources.ts';
import { isNotFound } from '../../kube/status-error.ts';
import type { Node } from '../../kube/types.ts';
import { CENTRAL_CORDONING_LABEL, controlNodes, nodeNameOf } from '../../signal/names.ts';

const NODE_LEASES = 'kube-node-lease';

export const drainDelegation: DrainDelegation = {
  nodeOf,

  /** A node says so with a label on its lease; one that does not does it itself, as releases before 1.35 do. */
  async isDelegated(client, stage, target, world, abort) {
    const { name } = nodeOf(stage, target, world)?.metadata ?? target;
    try {
      const lease = await client.get(leases, name, { namespace: NODE_LEASES, abort });
      return lease.metadata.labels?.[CENTRAL_CORDONING_LABEL] !== undefined;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  },
};

/** A controller without workloads has no Node, and image bundles disturb no pod. */
function nodeOf({ role, procedure }: Stage, { name }: Target, world: World): Node | undefined {
  if (procedure === 'airgapupdate') return undefined;
  if (role === 'worker') return world.get(nodes, name);
  const own = nodeNameOf(world.get(controlNodes, name));
  return own === undefined ? undefined : world.get(nodes, own);
}

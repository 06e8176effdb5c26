/** Which objects carry signals: ControlNodes those of controllers, Nodes those of workers and of all image bundles. */
import type { DrainDelegation, World } from '../../engine/dialect.ts';
import type { Stage, Target } from '../../engine/model/recorded.ts';
import { leases, nodes } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import type { Node } from '../../kube/types.ts';
import { CENTRAL_CORDONING_LABEL, controlNodes, nodeNameOf } from '../../signal/names.ts';
import { annotationSignal, foreignTargetsAmong } from '../annotation-signal.ts';
import { OBJECTS } from './discovery.ts';

export const signal = annotationSignal({ resourceOf: ({ role }) => OBJECTS[role] });
export const foreignWork = foreignTargetsAmong(OBJECTS);

const NODE_LEASES = 'kube-node-lease';

export const drainDelegation: DrainDelegation = {
  nodeOf,

  /** True if the node's lease has the label. Nodes without it (k0s before 1.35) cordon and drain themselves. */
  async isDelegated(client, stage, target, world, abort) {
    const { name } = nodeOf(stage, target, world)?.metadata ?? target;
    const lease = await ifFound(client.get(leases, name, { namespace: NODE_LEASES, abort }));
    return lease?.metadata.labels?.[CENTRAL_CORDONING_LABEL] !== undefined;
  },
};

/** Undefined for a controller without a kubelet, and for image bundles, which disturb no pod. */
function nodeOf({ role, procedure }: Stage, { name }: Target, world: World): Node | undefined {
  if (procedure === 'airgapupdate') return undefined;
  if (role === 'worker') return world.get(nodes, name);
  const own = nodeNameOf(world.get(controlNodes, name));
  return own === undefined ? undefined : world.get(nodes, own);
}

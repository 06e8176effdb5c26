/** Says what a hold of a Machine means for the other Machines of its owner. */
import { machineDeployments } from '../../api/capi/machine.ts';

interface NamedOwner {
  readonly kind: string;
  /** The name with the namespace before it. */
  readonly name: string;
}

/** Returns a clause about an owner while Cluster API has chosen one of its Machines, and this Machine waits. */
export function effectOfWaiting({ kind, name }: NamedOwner): string {
  return kind === machineDeployments.kind
    ? `this Machine uses up room of ${kind} ${name} (maxUnavailable), so other Machines of it may wait`
    : `${kind} ${name} updates no other Machine`;
}

/** Returns a clause that also tells which held Machines have this effect. */
export function effectOfHolds(owner: NamedOwner): string {
  return `while Cluster API waits for a held Machine that it has chosen, ${effectOfWaiting(owner)}`;
}

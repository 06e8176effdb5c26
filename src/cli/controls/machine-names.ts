/** Finds the names by which a user may refer to the Machine of a Node. */
import { NODE_ANNOTATIONS } from '../../api/capi/machine.ts';
import type { Node } from '../../kube/resources.ts';

/**
 * Returns the names by which a user may refer to the Machine of a Node: the name of the Node, the name of the Machine,
 * and `<namespace>/<machine>`.
 */
export function namesOf({ metadata: { name, annotations = {} } }: Node): string[] {
  const { [NODE_ANNOTATIONS.machine]: machine = name, [NODE_ANNOTATIONS.namespace]: namespace } =
    annotations;
  return namespace === undefined ? [name, machine] : [name, machine, `${namespace}/${machine}`];
}

/** What people and machines do to a node besides the plan: a hold ends, and a node is lost, joins, or is upgraded by hand. */
import { type KubeObject, withoutAnnotations } from '../../src/kube/resources.ts';
import { HOLD_ANNOTATION, holdOn } from '../../src/signal/holds.ts';
import type { Order } from './cluster.ts';
import { isInMotion, powerLostForGood } from './host.ts';
import { contentOf, type NodeState, objectAt, written } from './node-state.ts';
import type { Numbering } from './numbering.ts';
import { EDITED_VERSION } from './people.ts';
import { ABSENT_ANNOTATION, isPresent } from './presence.ts';
import { tellingVersion } from './told-versions.ts';

export interface NodeChange {
  /** A label that the name of the node follows. */
  readonly words: string;
  readonly to: NodeState;
}

type Change = (
  node: NodeState,
  object: KubeObject,
) => (NodeChange & { object: KubeObject }) | undefined;

/** Returns what the orders allow to happen to the node now. */
export function changesOf(
  node: NodeState,
  orders: readonly Order[],
  contents: Numbering<KubeObject>,
): NodeChange[] {
  const object = objectAt(contents, node.versions);
  return orders.flatMap((order) => {
    const change = CHANGES[order]?.(node, object);
    if (change === undefined) return [];
    return { words: change.words, to: written(change.to, contentOf(contents, change.object)) };
  });
}

const CHANGES: Readonly<Partial<Record<Order, Change>>> = {
  unhold(node, object) {
    if (holdOn(object) === undefined) return undefined;
    const free = withoutAnnotations(object, HOLD_ANNOTATION);
    return { words: 'somebody ends the hold of', to: node, object: free };
  },
  /** The machine is gone, and its object is deleted. Nothing happens on it any more. */
  loseNode(node, object) {
    if (!isPresent(object) || isLost(node)) return undefined;
    const to = { ...node, host: powerLostForGood(node.host) };
    return { words: 'somebody deletes', to, object: absent(object) };
  },
  joinNode(node, object) {
    if (isPresent(object) || isLost(node)) return undefined;
    const here = withoutAnnotations(object, ABSENT_ANNOTATION);
    return { words: 'a node joins:', to: node, object: here };
  },
  /** A person replaces the binary of a node at rest, and its service starts with the new one. */
  upgradeByHand(node, object) {
    const { host, journal } = node;
    const isAtRest = journal.phase === 'idle' && !isInMotion(host) && isPresent(object);
    if (!isAtRest || host.service?.file === EDITED_VERSION) return undefined;
    const service = {
      ...host.service,
      id: (host.service?.id ?? 0) + 1,
      file: EDITED_VERSION,
      life: 'up' as const,
    };
    const proven = [...new Set([...host.proven, EDITED_VERSION])].toSorted();
    const to = { ...node, host: { ...host, target: EDITED_VERSION, service, proven } };
    return {
      words: 'somebody upgrades by hand',
      to,
      object: tellingVersion(object, EDITED_VERSION),
    };
  },
};

function isLost({ host }: NodeState): boolean {
  return host.dark;
}

function absent(object: KubeObject): KubeObject {
  const annotations = { ...object.metadata.annotations, [ABSENT_ANNOTATION]: 'true' };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

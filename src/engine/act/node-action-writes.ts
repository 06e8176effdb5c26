/** Owns what each node action writes, in as few writes as it can be done with. */
import {
  withCordon,
  withoutAnyCordon,
  withoutCordon,
  withoutPendingTaint,
  withPendingTaint,
} from '../../drain/cordon.ts';
import { nodes } from '../../kube/resources.ts';
import type { Node } from '../../kube/types.ts';
import type { Dialect, Instruction, World } from '../dialect.ts';
import { pendingOwnerOf } from '../model/cordon-owners.ts';
import type { NodeAction } from '../model/decided.ts';
import type { Rollout } from '../model/recorded.ts';

/** To be carried out in this order, each only where the one before was. */
export function instructionsFor(
  { signal }: Pick<Dialect, 'signal'>,
  world: World,
  rollout: Rollout,
  nodeAction: Exclude<NodeAction, { kind: 'drain' }>,
  now: number,
): Instruction[] {
  const { stage, target, kind } = nodeAction;
  const node = nodeAction.node === undefined ? undefined : world.get(nodes, nodeAction.node);
  const pending = pendingOwnerOf(rollout.source);
  switch (kind) {
    case 'cordon':
      return changed(node, (seen) => withCordon(withoutPendingTaint(seen, pending), nodeAction.owner));
    case 'taint':
      return changed(node, (seen) => withPendingTaint(seen, pending));
    case 'clean-up': {
      const lift = nodeAction.cordon ? withoutCordon : asItIs;
      return changed(node, (seen) => lift(nodeAction.taint ? withoutPendingTaint(seen, pending) : seen));
    }
    case 'cancel':
      return present(signal.cancel?.(world, rollout, stage, target, nodeAction.reason, now));
    case 'acknowledge': {
      const { uncordon } = nodeAction;
      const lift = uncordon === undefined ? asItIs : uncordon === 'always' ? withoutAnyCordon : withoutCordon;
      return liftAndTell(node, lift, signal.acknowledge?.(world, rollout, stage, target, now));
    }
  }
}

function asItIs(node: Node): Node {
  return node;
}

function changed(node: Node | undefined, change: (node: Node) => Node): Instruction[] {
  const after = node && change(node);
  return after === undefined || after === node ? [] : [{ kind: 'replace', resource: nodes, object: after }];
}

/** Where the word goes on the very Node whose cordon is lifted, one write does both. */
function liftAndTell(node: Node | undefined, lift: (node: Node) => Node, word: Instruction | undefined): Instruction[] {
  const isSame =
    word?.kind === 'replace' && word.resource === nodes && word.object.metadata.name === node?.metadata.name;
  if (isSame) return [{ ...word, object: lift(word.object) }];
  return [...changed(node, lift), ...present(word)];
}

function present(instruction: Instruction | undefined): Instruction[] {
  return instruction === undefined ? [] : [instruction];
}

/** Owns what each errand writes, in as few writes as it can be done with. */
import { withCordon, withoutAnyCordon, withoutCordon, withoutPendingTaint, withPendingTaint } from '../drain/cordon.ts';
import { nodes } from '../kube/resources.ts';
import type { Node } from '../kube/types.ts';
import { pendingOwnerOf } from './cordons.ts';
import type { Dialect, Instruction, World } from './dialect.ts';
import type { Campaign, Errand } from './model.ts';

/** To be carried out in this order, each only where the one before was. */
export function instructionsFor(
  { signal }: Pick<Dialect, 'signal'>,
  world: World,
  campaign: Campaign,
  errand: Exclude<Errand, { kind: 'drain' }>,
  now: number,
): Instruction[] {
  const { stage, target, kind } = errand;
  const node = errand.node === undefined ? undefined : world.get(nodes, errand.node);
  const pending = pendingOwnerOf(campaign.source);
  switch (kind) {
    case 'cordon':
      return changed(node, (seen) => withCordon(withoutPendingTaint(seen, pending), errand.owner));
    case 'taint':
      return changed(node, (seen) => withPendingTaint(seen, pending));
    case 'tidy': {
      const lift = errand.cordon ? withoutCordon : asItIs;
      return changed(node, (seen) => lift(errand.taint ? withoutPendingTaint(seen, pending) : seen));
    }
    case 'withdraw':
      return present(signal.withdraw?.(world, campaign, stage, target, errand.reason, now));
    case 'go-on': {
      const { uncordon } = errand;
      const lift = uncordon === undefined ? asItIs : uncordon === 'always' ? withoutAnyCordon : withoutCordon;
      return liftAndTell(node, lift, signal.goOn?.(world, campaign, stage, target, now));
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

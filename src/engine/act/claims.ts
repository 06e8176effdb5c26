/** Claims on Nodes: of two plans that claim at once, in whatever process, one sees the other before it starts. */
import { type KubeObject, type Node, nodes } from '../../kube/resources.ts';
import { claimOf, claimOn, withClaim, withoutClaim } from '../../signal/at-work.ts';
import { onceForEach } from '../../util/memo.ts';
import type { Instruction } from '../dialect.ts';
import type { Signalling } from '../model/decision.ts';
import { withStages } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { carryOut, type Effects } from './writes.ts';

/** `instruction`, and in the same write the claim that the Node of the target has from its intent to its end. */
export function withItsClaim(
  { dialect, world }: Effects,
  { plan, policy }: { readonly plan: KubeObject; readonly policy: RolloutPolicy },
  { stage, target }: Pick<Signalling, 'stage' | 'target'>,
  instruction?: Instruction,
): Instruction | undefined {
  const node = dialect.claims && dialect.drainDelegation?.nodeOf(stage, target, world);
  if (!node) return instruction;
  const isTaken = target.state === 'intended' && dialect.claims?.(node, policy) === true;
  const written: Node = instruction?.kind === 'replace' ? instruction.object : node;
  const object = (isTaken ? withClaim : withoutClaim)(written, claimOf(dialect.name, plan));
  return object === node ? undefined : { kind: 'replace', resource: nodes, object };
}

/** The Nodes that are claimed for plans which are gone, or do not want them any more. `plans` still exist. */
export function claimsLeft(
  { dialect, world }: Pick<Effects, 'dialect' | 'world'>,
  plans: readonly KubeObject[],
  now: number,
): Node[] {
  const whose = `${dialect.name}/${dialect.scope?.namespace ?? ''}/`;
  const claimed = claimedAmong(dialect.claims ? world.list(nodes) : []);
  const own = claimed.filter((node) => claimOn(node)?.startsWith(whose));
  if (own.length === 0) return own;
  const wanted = plans.flatMap((plan) => {
    const intended = withStages(dialect.resolve(plan, world, now)).filter(({ target }) => target.state === 'intended');
    const wantedNodes = intended.map(({ stage, target }) => dialect.drainDelegation?.nodeOf(stage, target, world));
    return wantedNodes.map((node) => `${node?.metadata.name} ${claimOf(dialect.name, plan)}`);
  });
  return own.filter((node) => !wanted.includes(`${node.metadata.name} ${claimOn(node)}`));
}

const claimedAmong = onceForEach((all: readonly Node[]) => all.filter((node) => claimOn(node) !== undefined));

export async function dropClaim(effects: Effects, node: Node): Promise<void> {
  await carryOut(effects, { kind: 'replace', resource: nodes, object: withoutClaim(node, claimOn(node) ?? '') });
}

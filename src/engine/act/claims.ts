/** Claims on Nodes: of two plans that claim at once, in whatever process, one sees the other before it starts. */
import { type KubeObject, keyOf, type Node, nodes } from '../../kube/resources.ts';
import { isOfObject } from '../../kube/status-error.ts';
import { claimOf, claimOn, withClaim, withoutClaim } from '../../signal/at-work.ts';
import { onceForEach } from '../../util/memo.ts';
import type { Instruction } from '../dialect.ts';
import { inState, type Rollout } from '../model/rollout.ts';
import { type Accompanying, carryOut, type Effects, type RecordChange } from './writes.ts';

type Knowledge = Pick<Effects, 'dialect' | 'world'>;

/** Those that intended targets lack. One of another plan stays: then the target waits. */
export function claimsFor({ dialect, world }: Knowledge, { plan, policy, after }: RecordChange): Accompanying[] {
  return intendedOn({ dialect, world }, after).flatMap(({ node, ...at }) => {
    if (claimOn(node) !== undefined || dialect.claims?.(node, policy) !== true) return [];
    return { ...at, instruction: replaced(withClaim(node, claimOf(dialect.name, plan))) };
  });
}

function intendedOn({ dialect, world }: Knowledge, { stages }: Rollout) {
  return stages.flatMap((stage) =>
    inState(stage, 'intended').flatMap((target) => {
      const node = dialect.drainDelegation?.nodeOf(stage, target, world);
      return node ? [{ stage, target, node }] : [];
    }),
  );
}

const replaced = (object: Node): Instruction => ({ kind: 'replace', resource: nodes, object });

/** The Nodes that are claimed for plans which are gone, or for that of `key`, which does not want them any more. */
export function claimsLeft(on: Knowledge, plans: readonly KubeObject[], key: string, now: number): readonly Node[] {
  const { dialect, world } = on;
  const whose = `${dialect.name}/${dialect.scope?.namespace ?? ''}/`;
  const all = dialect.claims ? claimedAmong(world.list(nodes)) : [];
  const claimed = all.filter((node) => claimOn(node)?.startsWith(whose));
  if (claimed.length === 0) return claimed;
  const wantedFor = (plan: KubeObject) => (keyOf(plan) === key ? wantedBy(on, plan, now) : () => true);
  const wanted = new Map(plans.map((plan) => [claimOf(dialect.name, plan), wantedFor(plan)]));
  return claimed.filter((node) => wanted.get(claimOn(node) ?? '')?.(node) !== true);
}

/** A record that cannot be read wants all. */
function wantedBy(on: Knowledge, plan: KubeObject, now: number): (node: Node) => boolean {
  const rollout = on.dialect.resolve(plan, on.world, now);
  const names = new Set(intendedOn(on, rollout).map(({ node }) => node.metadata.name));
  return ({ metadata }) => rollout.unread !== undefined || names.has(metadata.name);
}

const claimedAmong = onceForEach((all: readonly Node[]) => all.filter((node) => claimOn(node) !== undefined));

/** One that is changed or refused is left for the next time. */
export async function dropClaim(effects: Effects, node: Node): Promise<void> {
  await carryOut(effects, replaced(withoutClaim(node, claimOn(node) ?? ''))).catch((error: unknown) => {
    if (!isOfObject(error)) throw error;
  });
}

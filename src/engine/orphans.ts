/** Owns what is done for nodes whose plan is gone: each is brought to an end, and keeps no cordon of ours. */
import type { KubeObject } from '../kube/types.ts';
import type { Clock } from '../util/clock.ts';
import { decide } from './decide.ts';
import type { Orphan, World } from './dialect.ts';
import { type Effects, prepareErrands } from './execute.ts';
import { gatherFacts } from './gather.ts';
import type { Errand } from './model.ts';
import { NO_ORDERS } from './orders.ts';
import type { View } from './own-writes.ts';
import { DEFAULT_POLICY } from './policy/campaign-policy.ts';
import type { Teller } from './teller.ts';

interface Parts<P extends KubeObject> extends Effects<P> {
  readonly clock: Clock;
  readonly teller?: Pick<Teller<P>, 'cleared'> | undefined;
}

/** A write that somebody came before, or a node that has to say a word first. */
const RECHECK_MS = 1000;

/**
 * A plan that is gone is decided on as a campaign that is over: signals are withdrawn, cordons lifted. That it is gone is
 * asked past all caches: a node may show the signal of a plan that no cache shows yet.
 */
export async function careForOrphans<P extends KubeObject>(
  parts: Parts<P>,
  world: World,
  seen: Pick<View<P>, 'list'>,
): Promise<{ readonly requeueAfterMs?: number }> {
  const { dialect, client, clock, teller, signal } = parts;
  const errandsAmong = (plans: readonly P[]) =>
    (dialect.orphans?.(world, plans) ?? []).map((orphan) => errandsFor(parts, world, orphan));
  if (errandsAmong(seen.list()).every(({ errands }) => errands.length === 0)) return {};
  const { plans, namespace, fieldSelector } = dialect;
  const { items } = await client.listAll(plans, { signal, namespace, fieldSelector });
  const left = errandsAmong(items).filter(({ errands }) => errands.length > 0);
  for (const { campaign, errands } of left) {
    for (const slice of prepareErrands(parts, world, campaign, errands, clock.now())) {
      await slice.run((errand) => teller?.cleared(world, campaign, errand));
    }
  }
  return left.length > 0 ? { requeueAfterMs: RECHECK_MS } : {};
}

function errandsFor<P extends KubeObject>(
  { dialect, clock, drains }: Parts<P>,
  world: World,
  { campaign, plan }: Orphan<P>,
): { readonly campaign: Orphan['campaign']; readonly errands: readonly Errand[] } {
  const now = clock.now();
  const known = { drainOf: (node: string, owner: string) => drains?.stateOf(node, owner) };
  const snapshot = { ...gatherFacts({ dialect, plan, campaign, world, known }, now), orders: NO_ORDERS };
  return { campaign, errands: decide(snapshot, DEFAULT_POLICY, now).errands };
}

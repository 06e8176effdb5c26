/** How cordons, taints and drains name the rollout that owns them, so that they can be removed with it. */
import { readOwner, writeOwner } from '../../drain/cordon.ts';
import type { Rollout, Source, Target } from './recorded.ts';

export function ownerOf(
  { source: { uid, kind } }: { readonly source: Pick<Source, 'uid' | 'kind'> },
  { since }: Pick<Target, 'since'>,
): string {
  return writeOwner({ plan: uid, attempt: since, kind });
}

/** A node that cordons itself knows the rollout's id, not the plan's uid. */
export function isOwnedBy({ source, id }: Pick<Rollout, 'source' | 'id'>, owner: string | undefined): boolean {
  const plan = owner === undefined ? undefined : readOwner(owner)?.plan;
  return plan !== undefined && (plan === source.uid || plan === id);
}

/** The owner of a soft taint, which is for the whole rollout. */
export function pendingOwnerOf({ uid, kind }: Pick<Source, 'uid' | 'kind'>): string {
  return `${kind}.${uid}`;
}

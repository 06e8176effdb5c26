/** Owns the words in which cordons, taints and drains name the rollout they are for, so that they never outlive it. */
import { readOwner, writeOwner } from '../../drain/cordon.ts';
import type { Rollout, Source, Target } from './recorded.ts';

export function ownerOf(
  { source: { uid, kind } }: { readonly source: Pick<Source, 'uid' | 'kind'> },
  { since }: Pick<Target, 'since'>,
): string {
  return writeOwner({ plan: uid, attempt: since, kind });
}

/** A node that cordons itself knows only the plan's own name for this run. */
export function isOwnedBy({ source, id }: Pick<Rollout, 'source' | 'id'>, owner: string | undefined): boolean {
  const plan = owner === undefined ? undefined : readOwner(owner)?.plan;
  return plan !== undefined && (plan === source.uid || plan === id);
}

/** The same of the soft taint, which is for the whole rollout: `<kind of the plan>.<uid of the plan>`. */
export function pendingOwnerOf({ uid, kind }: Pick<Source, 'uid' | 'kind'>): string {
  return `${kind}.${uid}`;
}

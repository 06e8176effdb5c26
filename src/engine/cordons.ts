/** Owns the words in which cordons, taints and drains name the campaign they are for, so that they never outlive it. */
import type { Campaign, Source, Target } from './model.ts';

/**
 * `<uid of the plan>/<attempt>/<kind of the plan>`: of another attempt nothing is known, and only who knows the plans of a
 * kind can tell that one is gone.
 */
export function ownerOf(
  { source: { uid, kind } }: { readonly source: Pick<Source, 'uid' | 'kind'> },
  { since }: Pick<Target, 'since'>,
): string {
  return `${uid}/${since}/${kind}`;
}

/** A node that cordons itself knows only the plan's own name for this run. */
export function isOwnedBy({ source, id }: Pick<Campaign, 'source' | 'id'>, owner: string | undefined): boolean {
  return owner?.startsWith(`${source.uid}/`) === true || (id !== '' && owner?.startsWith(`${id}/`) === true);
}

/** The same of the soft taint, which is for the whole campaign: `<kind of the plan>.<uid of the plan>`. */
export function pendingOwnerOf({ uid, kind }: Pick<Source, 'uid' | 'kind'>): string {
  return `${kind}.${uid}`;
}

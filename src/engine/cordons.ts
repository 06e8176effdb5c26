/** Owns the words in which a cordon or a drain names the campaign it is for, so that it never outlives it. */
import type { Campaign, Source, Target } from './model.ts';

/** `<uid of the plan>/<attempt>`: of another attempt nothing is known. */
export function ownerOf(
  { source }: { readonly source: Pick<Source, 'uid'> },
  { since }: Pick<Target, 'since'>,
): string {
  return `${source.uid}/${since}`;
}

/** A node that cordons itself knows only the plan's own name for this run. */
export function isOwnedBy({ source, id }: Pick<Campaign, 'source' | 'id'>, owner: string | undefined): boolean {
  return owner?.startsWith(`${source.uid}/`) === true || (id !== '' && owner?.startsWith(`${id}/`) === true);
}

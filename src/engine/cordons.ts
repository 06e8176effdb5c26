/** Owns the words in which a cordon names the campaign it is for, so that it never outlives it. */
import type { Campaign, Target } from './model.ts';

/** `<uid of the plan>/<attempt>`. */
export function ownerOf({ source }: Pick<Campaign, 'source'>, { since }: Pick<Target, 'since'>): string {
  return `${source.uid}/${since}`;
}

export function isOwnedBy({ source }: Pick<Campaign, 'source'>, owner: string | undefined): boolean {
  return owner?.startsWith(`${source.uid}/`) === true;
}

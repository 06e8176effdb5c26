/** Owns records that are spread over several objects: what a dialect tells of them, and which of them must still be as seen. */
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/status-error.ts';
import type { Seen } from './dialect.ts';
import type { Campaign, Target } from './model.ts';
import { isFinal } from './model.ts';

/**
 * Targets that a plan holds at most; of a larger one ledgers beside it hold them. An entry of a plan's status takes some 100
 * bytes, 200 with the longest names in use, so this many stay below two thirds of the 1.5 MiB that etcd takes in one
 * request, and leave room for a spec that lists them. No campaign has more than this in flight either.
 */
export const PLAN_HOLDS = 5_000;

/**
 * Targets whose state before a record must be true for it: those that it intends and that were not intended, or not by that
 * attempt; all of them where it ends the campaign.
 */
export function restingOn(before: Campaign, after: Campaign): Target[] {
  const all = after.stages.flatMap(({ targets }) => targets);
  if (isFinal(after)) return all;
  const known = new Set(before.stages.flatMap(({ targets }) => targets));
  return all.filter((target) => target.state === 'intended' && !known.has(target));
}

/** Asks past all caches, all at once. False where one of the objects is gone, or not at the version that was seen. */
export async function areUnchanged(
  client: KubeClient,
  seen: readonly Seen[],
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const answers = seen.map(async ({ resource, object: { metadata } }) => {
    const { name, namespace, resourceVersion } = metadata;
    return (await client.get(resource, name, { namespace, signal })).metadata.resourceVersion === resourceVersion;
  });
  try {
    return (await Promise.all(answers)).every(Boolean);
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

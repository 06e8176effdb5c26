/** Owns records that are spread over several objects: what a dialect tells of them, and which of them must still be as seen. */
import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/status-error.ts';
import type { Seen } from './dialect.ts';
import type { Campaign, Target } from './model.ts';

/**
 * Targets that a plan holds at most; of a larger one ledgers beside it hold them. An entry of a plan's status takes some 100
 * bytes, 200 with the longest names in use, so this many stay below two thirds of the 1.5 MiB that etcd takes in one
 * request, and leave room for a spec that lists them. No campaign has more than this in flight either.
 */
export const PLAN_HOLDS = 5_000;

/** Targets that the record `after` intends and `before` did not, or not by that attempt. */
export function newlyIntended(before: Campaign, after: Campaign): Target[] {
  const known = new Set(before.stages.flatMap(({ targets }) => targets));
  return after.stages.flatMap(({ targets }) =>
    targets.filter((target) => target.state === 'intended' && !known.has(target)),
  );
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

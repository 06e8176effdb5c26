/** Owns records that are spread over several objects: what a dialect tells of them, and which of them must still be as seen. */
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/status-error.ts';
import type { Seen } from '../dialect.ts';
import type { Rollout, Target } from '../model/recorded.ts';
import { isFinal } from '../model/recorded.ts';

/** Targets that a plan holds at most, however short their names are; of a larger one status shards beside it hold them. */
export const PLAN_HOLDS = 5_000;

/** Bytes that targets take in a plan at most: two thirds of the 1.5 MiB that etcd takes in one request, for all else stands there too. */
const PLAN_BYTES = 2 ** 20;

/** Bytes of a target beside its name: an entry of a plan's status takes up to 90, one of a spec that lists it 3. */
const ENTRY_BYTES = 100;

type Named = Pick<Target, 'name'>;

/** In the status, and once more in a spec that lists it. */
const bytesOf = ({ name }: Named): number => ENTRY_BYTES + 2 * name.length;

/** True where these lists are more than one object holds: by count, or by their names. */
export function exceedPlan(lists: readonly (readonly Named[])[], most = PLAN_HOLDS): boolean {
  if (lists.reduce((sum, { length }) => sum + length, 0) > most) return true;
  let bytes = 0;
  for (const targets of lists) for (const target of targets) bytes += bytesOf(target);
  return bytes > PLAN_BYTES;
}

/** True where no plan could hold the record. */
export function isLarge({ stages }: Rollout): boolean {
  return exceedPlan(stages.map(({ targets }) => targets));
}

/** How many of these targets may be in flight at once: a plan lists those whatever status shards hold. */
export function mostInFlight(targets: readonly Named[]): number {
  const longest = targets.reduce((bytes, target) => Math.max(bytes, bytesOf(target)), ENTRY_BYTES);
  return Math.min(PLAN_HOLDS, Math.floor(PLAN_BYTES / longest));
}

/**
 * Targets whose state before a record must be true for it: those that it intends and that were not intended, or not by that
 * attempt; all of them where it ends the rollout.
 */
export function restingOn(before: Rollout, after: Rollout): Target[] {
  const all = after.stages.flatMap(({ targets }) => targets);
  if (isFinal(after)) return all;
  const known = new Set(before.stages.flatMap(({ targets }) => targets));
  return all.filter((target) => target.state === 'intended' && !known.has(target));
}

/** Asks past all caches, all at once. False where one of the objects is gone, or not at the version that was seen. */
export async function areUnchanged(
  client: KubeClient,
  seen: readonly Seen[],
  abort: AbortSignal | undefined,
): Promise<boolean> {
  const answers = seen.map(async ({ resource, object: { metadata } }) => {
    const { name, namespace, resourceVersion } = metadata;
    return (await client.get(resource, name, { namespace, abort })).metadata.resourceVersion === resourceVersion;
  });
  try {
    return (await Promise.all(answers)).every(Boolean);
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

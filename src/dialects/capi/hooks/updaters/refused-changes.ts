/** Writes into the status of an UpdaterSet which Machines and MachineSets wait because no updater covers their change. */
import { type UpdaterSet, updaterSets } from '../../../../api/refit/updater-set.ts';
import { withCondition } from '../../../../runtime/conditions.ts';
import { rfc3339 } from '../../../../util/clock.ts';
import { printable } from '../../../../util/printable.ts';
import { type CallParts, listSets } from './updater-sets.ts';

export const MOST = 20;
const LONGEST = 1000;
/**
 * An entry is removed when this many milliseconds have passed since Cluster API last asked about it. Cluster API asks
 * again after at most 17 minutes.
 */
const FORGET_MS = 30 * 60_000;
/**
 * If Cluster API asks about an entry whose time is older than this many milliseconds, the entry gets the present time,
 * so that it is not removed.
 */
const RENEW_MS = 5 * 60_000;

/**
 * Removes the entries about which Cluster API no longer asks, because the change was undone or the object was deleted.
 */
export async function forgetUnasked(parts: CallParts): Promise<void> {
  for (const set of await listSets(parts)) await tellRefused(parts, set, '');
}

/**
 * Writes the entry of `object` with the reason `why`. If `why` is undefined, removes the entry, because the change is
 * accepted or Cluster API may replace the Machine. Also removes old entries. Sends a write only if something changes.
 */
export async function tellRefused(
  parts: CallParts,
  set: UpdaterSet,
  object: string,
  why?: string,
): Promise<void> {
  const { management, clock, abort } = parts;
  const { name, resourceVersion } = set.metadata;
  const { status = {} } = set;
  const message = why === undefined ? undefined : printable(why).slice(0, LONGEST);
  const now = clock.now();
  const ageOf = ({ asked }: { readonly asked: string }): number => now - Date.parse(asked);
  const told = (status.uncovered ?? []).filter((each) => ageOf(each) < FORGET_MS);
  const known = told.find((each) => each.object === object);
  const isTold = known?.message === message && (known === undefined || ageOf(known) < RENEW_MS);
  if (isTold && told.length === (status.uncovered ?? []).length) return;
  const others = told.filter((each) => each.object !== object);
  const uncovered =
    message === undefined
      ? others
      : [...others, { object, message, asked: rfc3339(now) }].slice(-MOST);
  const [last] = uncovered.slice(-1);
  const condition = last
    ? ({
        type: 'Covered',
        status: 'False',
        reason: 'Uncovered',
        message: `${last.object}: ${last.message}`,
      } as const)
    : ({ type: 'Covered', status: 'True', reason: 'Covered', message: '' } as const);
  const conditions = withCondition(status.conditions, condition, now);
  const patch = { metadata: { resourceVersion }, status: { uncovered, conditions } };
  await management.patch(updaterSets, name, patch, { type: 'merge', subresource: 'status', abort });
}

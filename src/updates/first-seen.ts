/** Remembers when Refit saw each release of a channel first. */
import { rfc3339 } from '../util/clock.ts';
import type { Release } from './channel/read-index.ts';
import type { UpdateSettings } from './config/read-config.ts';

interface SeenReleases {
  /** The RFC 3339 time at which Refit saw each release first, by version. The oldest entry is the first one. */
  readonly seen: Map<string, string>;
}

/**
 * The most releases for which Refit keeps the time at which it saw them first. These are the newest release of the
 * channel, and the releases of the minor versions before it.
 */
const MOST_SEEN = 10;

/**
 * Returns the time at which Refit saw the release first, in milliseconds. For a new release, it stores the time if the
 * UpdateConfig has a minimum age.
 */
export function firstSeen(
  { seen }: SeenReleases,
  { minimumAge }: UpdateSettings,
  { version }: Release,
  now: number,
): number {
  const known = Date.parse(seen.get(version) ?? '');
  if (!Number.isNaN(known)) return Math.min(known, now);
  if (minimumAge === undefined) return now;
  seen.set(version, rfc3339(now));
  const [oldest] = seen.keys();
  if (seen.size > MOST_SEEN && oldest !== undefined) seen.delete(oldest);
  return now;
}

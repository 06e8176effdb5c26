/** Reads for how long `refit start` opens a maintenance window. */
import { parseDuration } from '../../util/duration.ts';

/**
 * The longest time for which `refit start` opens a window. The command is meant for a short occasion, such as one
 * evening, and does not replace the windows of a policy.
 */
const MOST_OPEN_MS = 7 * 86_400_000;

/** Returns the milliseconds of a text such as `2h`; undefined if it is no duration, or is too long. */
export function openingLength(text: string): number | undefined {
  const milliseconds = parseDuration(text) ?? Number.POSITIVE_INFINITY;
  return milliseconds <= MOST_OPEN_MS ? milliseconds : undefined;
}

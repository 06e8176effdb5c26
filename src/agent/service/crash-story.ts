/**
 * Describes how a service that did not stay up ended: how often it was started, its last exit code, and the end of its
 * log.
 */
import { formatDuration } from '../../util/duration.ts';
import { shownLine } from '../../util/log-line.ts';

/**
 * What the supervisor of a service knows since the service was last restarted on request. Every member may be missing.
 */
export interface SupervisorAccount {
  /** Counts how often the supervisor started the service again by itself. */
  readonly restarts?: number | undefined;
  /** Says how the last process ended, such as `exit code 1`. */
  readonly end?: string | undefined;
  readonly log?: readonly string[] | undefined;
}

/** The number of ended processes from which on the text says "crash loop", because fewer may be a coincidence. */
const LOOP_FROM = 3;
/** The most lines that are shown from the end of the log. Only the beginning of each line is shown. */
const MOST_LINES = 3;

/**
 * Adds the description to the reason. `exits` counts the processes that the agent itself saw end,
 * so it may be too low. `ms` is the time since the restart in milliseconds.
 */
export function withCrashStory(
  reason: string,
  exits: number,
  account: SupervisorAccount,
  ms: number,
): string {
  const { restarts = 0, end, log = [] } = account;
  const starts = Math.max(exits, restarts) + 1;
  const lines = log.filter((line) => line.trim() !== '').slice(-MOST_LINES);
  const parts = [
    ...(starts > 1
      ? [`started ${restarts >= exits ? '' : 'at least '}${starts} times in ${formatDuration(ms)}`]
      : []),
    ...(end === undefined ? [] : [end]),
    ...(lines.length === 0 ? [] : [`last lines of its log: ${lines.map(shownLine).join(' | ')}`]),
  ];
  const isLoop = starts >= LOOP_FROM && !reason.startsWith('crash loop');
  return `${isLoop ? 'crash loop: ' : ''}${[reason, ...(parts.length === 0 ? [] : [parts.join(', ')])].join('; ')}`;
}

/**
 * Describes what has happened so far, while the agent still waits for the new version to stay up. Returns undefined
 * before the first process has ended. It leaves out the log, which changes at each start; the log is shown at the end
 * of the upgrade.
 */
export function crashesSoFar(
  version: string,
  exits: number,
  { restarts = 0, end }: SupervisorAccount,
  ms: number,
): string | undefined {
  const ends = Math.max(exits, restarts);
  if (ends === 0) return undefined;
  const atLeast = restarts >= exits ? '' : 'at least ';
  const often = ends === 1 ? 'once' : `${ends} times`;
  const code = end === undefined ? '' : `, last with ${end}`;
  const isLoop = ends + 1 >= LOOP_FROM;
  const what = `the process of ${version} ended ${atLeast}${often} in ${formatDuration(ms)}${code}`;
  return `${isLoop ? 'crash loop: ' : ''}${what}`;
}

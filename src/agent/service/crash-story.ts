/**
 * Describes how the processes of a failed service ended: how often the service was started, its last exit code, and the
 * end of its log.
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

/** If at least this many processes have ended, the text says "crash loop". A smaller number may be a coincidence. */
const LOOP_FROM = 3;
/** The most lines that are shown from the end of the log. Only the beginning of each line is shown. */
const MOST_LINES = 3;

/**
 * Adds the description to the reason. `exits` is the number of processes whose end the agent itself observed, so it may
 * be too low. `ms` is the time since the restart in milliseconds.
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
 * Describes how often processes of the new version have ended so far, while the agent still waits for that version.
 * Returns undefined until the first process has ended. The description does not contain the log, because the log
 * changes at each start. The log is shown at the end of the upgrade.
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

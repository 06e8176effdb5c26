/** Tells how a service that did not stay up ended: how often it was started, its last exit code, the end of its log. */
import { formatDuration } from '../../util/duration.ts';
import { shownLine } from '../../util/log-line.ts';

/** What the supervisor of a service knows of it since its last start by order; every part may be missing. */
export interface SupervisorAccount {
  /** How often the supervisor started it again by itself. */
  readonly restarts?: number | undefined;
  /** Such as `exit code 1`. */
  readonly end?: string | undefined;
  readonly log?: readonly string[] | undefined;
}

/** One restart more may be a coincidence. */
const LOOP_FROM = 3;
/** Of the log: the last lines, and what is shown of each. */
const MOST_LINES = 3;

/** `exits`: how many processes the agent itself saw end, which may miss some. `ms`: since the restart. */
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
 * What happened so far while the agent still waits for the new version to stay up; undefined before its first process ended.
 * The log is left out, since it changes at each start: the end of the update tells it.
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

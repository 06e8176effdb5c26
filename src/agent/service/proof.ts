/**
 * Decides whether a version is proven to run. After the restart, its process must keep running for the soak time on a
 * node that is Ready.
 */
import { formatDuration } from '../../util/duration.ts';
import type { UpdateJournal } from '../journal.ts';
import type { OwnNodeFacts, Times, UpdateInput } from '../step-input.ts';
import { rollBack, type Step } from '../steps/step.ts';
import { isSameProcess, type ProcessId, type RunningService } from './host.ts';

/**
 * The milliseconds that the restart with the old binary may take. Within 90 s after the new version was judged as
 * failed, the old version must run again or be reported as failed. The rest of that time is for the other steps.
 */
const ROLL_BACK_MS = 80_000;
/**
 * Milliseconds for which a service may not answer before it counts as failed. A worker asks the API server before it answers, and needs up
 * to 45 s to notice that its connection to the API server is dead.
 */
const UNRESPONSIVE_MS = 60_000;

/** Returns the next step between the restart with the new binary and the first answer of the new version. */
export function afterRestart(input: UpdateInput): Step {
  const { journal, host, now } = input;
  const { running } = host;
  if (running !== undefined && runsNew(input))
    return { kind: 'soak', process: running.process, ...overtaking(input) };
  const { version } = journal.work.signal.command;
  if (running?.current === true && running.version !== version && isOther(running, journal))
    return rollBack(`after the restart the service runs ${running.version} instead of ${version}`);
  const { restartTimeoutMs } = timesOf(input);
  const until = (journal.since ?? now) + restartTimeoutMs;
  if (now < until) return { kind: 'await-service', until };
  return rollBack(
    `the service did not show ${version} within ${formatDuration(restartTimeoutMs)} of its restart`,
  );
}

/** Says of a step that k0s's own agent may swap the same binary, if this agent acts although k0s runs its own agent. */
export function overtaking({ beside, host }: UpdateInput): { readonly overtakes?: true } {
  return beside === 'replace' && host.ownAgent !== false ? { overtakes: true } : {};
}

/**
 * Returns the next step after the new process has answered with the wanted version. It must keep running for the soak
 * time.
 */
export function soak(input: UpdateInput): Step {
  const { journal, host, node, now } = input;
  const { soakMs, readyTimeoutMs } = timesOf(input);
  const began = journal.since ?? now;
  const change = changeOf(input);
  if (change !== undefined)
    return (
      rewatch(input) ?? rollBack(`${change} ${formatDuration(now - began)} after its first answer`)
    );
  if (host.running === undefined) {
    const until = now - (host.unansweredMs ?? 0) + UNRESPONSIVE_MS;
    return now < until
      ? { kind: 'await-service', until }
      : rollBack('the new process stopped answering');
  }
  const until = Math.max(began + soakMs, readyDeadline(node, began, now, readyTimeoutMs));
  if (now < until) return { kind: 'await-service', until };
  const within = `within ${formatDuration(now - began)} of the new version's first answer`;
  if (node.staleMs !== undefined) return rollBack(`no kubelet heartbeat ${within}`);
  return node.isReady === false
    ? rollBack(`node not Ready ${within}`)
    : { kind: 'report', status: 'UnCordoning' };
}

/**
 * Returns the next step after a restart with the old binary. If the roll-back has ended, it returns how it ended:
 * `runs` or `too late`.
 */
export function proveOld(input: UpdateInput): 'runs' | 'too late' | Step {
  if (runsOld(input)) return 'runs';
  const { journal, now } = input;
  const wholeMs = Math.min(timesOf(input).restartTimeoutMs, ROLL_BACK_MS);
  const until = (journal.since ?? now) + wholeMs;
  const killAt = until - wholeMs / 2;
  if (now < killAt) return { kind: 'await-service', until: killAt };
  if (now >= until) return 'too late';
  const { process } = journal;
  if (process !== undefined && isStillThere(input)) return { kind: 'kill', process };
  return { kind: 'await-service', until };
}

/**
 * Returns true if the wanted version runs in a new process. For a forced update, that process must execute the file at
 * the target path.
 */
export function runsNew({ journal, host: { running } }: UpdateInput): boolean {
  return running !== undefined && isWanted(running, journal) && isOther(running, journal);
}

/**
 * Returns the step that watches a process which k0s's own agent may have started. Refit's agent may have ordered a
 * restart as well, and that restart will soon end this process. So the step first waits for that restart.
 */
export function watchOther(input: UpdateInput): Step | undefined {
  const { journal, now } = input;
  const process = startedByOther(input);
  if (process === undefined) return undefined;
  const until = (journal.since ?? now) + timesOf(input).restartTimeoutMs / 2;
  return now < until ? { kind: 'await-service', until } : { kind: 'soak', process };
}

/**
 * Returns the step that watches the process which k0s's own agent started while the agent of Refit was down. k0s's own
 * agent may have reported the upgrade as completed, so the process is not rolled back.
 */
export function rewatch(input: UpdateInput): Step | undefined {
  const { ownAgent, exits } = input.host;
  const process = startedByOther(input);
  // If the agent observed that processes ended, this is a crash loop, and nobody else has restarted the service.
  return process && ownAgent !== false && exits === undefined
    ? { kind: 'soak', process }
    : undefined;
}

/** Returns the process with the wanted version if k0s's own agent may have started it. */
function startedByOther({
  beside = 'replace',
  journal,
  host: { running },
}: UpdateInput): ProcessId | undefined {
  if (beside === 'replace' || running === undefined || !isWanted(running, journal))
    return undefined;
  return isSameProcess(running.process, journal.work.original) ? undefined : running.process;
}

/**
 * Returns true if the old version runs. An answer of the process that the restart must end proves nothing, because it
 * may still answer for a while.
 */
export function runsOld({ journal, host: { running } }: UpdateInput): boolean {
  if (running === undefined || isSameProcess(running.process, journal.process)) return false;
  return running.current && running.version === journal.work.from;
}

/** Returns true while the process that the last restart must end still exists. */
export function isStillThere({ journal, host }: UpdateInput): boolean {
  return isSameProcess(host.service, journal.process);
}

/**
 * Returns the time by which the node must be Ready, in milliseconds of the steady clock. The time with a stale
 * heartbeat counts only while the API server answers, because otherwise no kubelet could send a heartbeat.
 */
function readyDeadline(
  { isReady, staleMs }: OwnNodeFacts,
  began: number,
  now: number,
  readyTimeoutMs: number,
): number {
  if (staleMs !== undefined) return now - staleMs + readyTimeoutMs;
  return isReady === false ? began + readyTimeoutMs : began;
}

/**
 * Returns how the watched process has changed, as a clause for people; undefined while the process exists and its
 * answers stay the same.
 */
function changeOf({ journal, host: { running, service } }: UpdateInput): string | undefined {
  const { fresh, work } = journal;
  const { version } = work.signal.command;
  if (!isSameProcess(running?.process ?? service, fresh))
    return `crash loop: the process of ${version} (PID ${fresh?.pid}) ended`;
  if (running === undefined || isWanted(running, journal)) return undefined;
  return running.version === version || isForced(journal)
    ? `the process of ${version} runs another file than the one at ${work.binary}`
    : `the new process reports version ${running.version} instead of ${version}`;
}

/**
 * Returns true if the process executes the file at the path and has the wanted version. A forced update may install any
 * version, as with the original agent.
 */
function isWanted({ version, current }: RunningService, journal: UpdateJournal): boolean {
  return current && (isForced(journal) || version === journal.work.signal.command.version);
}

function isForced({ work }: UpdateJournal): boolean {
  return work.signal.command.forceupdate === true;
}

function isOther({ process }: RunningService, { process: ended, work }: UpdateJournal): boolean {
  return !isSameProcess(process, ended) && !isSameProcess(process, work.original);
}

/** Returns the time limits. Limits in the policy of the signal override the limits from the flags. */
export function timesOf({ times, journal }: UpdateInput): Times {
  return { ...times, ...journal.work.policy };
}

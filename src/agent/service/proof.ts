/** Decides whether a version runs: seen from outside after a restart, for the soak time, on a node that is Ready. */
import { formatDuration } from '../../util/duration.ts';
import type { UpdateJournal } from '../journal.ts';
import type { OwnNodeFacts, Times, UpdateInput } from '../step-input.ts';
import { rollBack, type Step } from '../steps/step.ts';
import { isSameProcess, type ProcessId, type RunningService } from './host.ts';

/** The old version must run again, or be reported as failed, within 90 s of the verdict on the new one. */
const ROLL_BACK_MS = 80_000;
/** A worker asks the API server before it answers, and needs up to 45 s to find that a connection to it is dead. */
const UNRESPONSIVE_MS = 60_000;

export function afterRestart(input: UpdateInput): Step {
  const { journal, host, now } = input;
  const { running } = host;
  if (running !== undefined && runsNew(input)) return { kind: 'soak', process: running.process };
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

/** The new process has shown the wanted version once, and must keep running. */
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

/** After a restart with the old binary: how it ended, or the next step. */
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

/** Another process than before, with the wanted version; for a forced update, with the file at the target path. */
export function runsNew({ journal, host: { running } }: UpdateInput): boolean {
  return running !== undefined && isWanted(running, journal) && isOther(running, journal);
}

/** Where k0s's own agent restarted the service, too. A restart of ours may have been ordered, which ends it soon. */
export function watchOther(input: UpdateInput): Step | undefined {
  const { journal, now } = input;
  const process = startedByOther(input);
  if (process === undefined) return undefined;
  const until = (journal.since ?? now) + timesOf(input).restartTimeoutMs / 2;
  return now < until ? { kind: 'await-service', until } : { kind: 'soak', process };
}

/** While the agent was down, k0s's own one may have reported the wanted version as the end: that is not rolled back. */
export function rewatch(input: UpdateInput): Step | undefined {
  const { ownAgent, exits } = input.host;
  const process = startedByOther(input);
  // Exits that were seen are a crash loop.
  return process && ownAgent !== false && exits === undefined
    ? { kind: 'soak', process }
    : undefined;
}

/** The process with the wanted version, if k0s's own agent may have started it. */
function startedByOther({
  beside = 'replace',
  journal,
  host: { running },
}: UpdateInput): ProcessId | undefined {
  if (beside === 'replace' || running === undefined || !isWanted(running, journal))
    return undefined;
  return isSameProcess(running.process, journal.work.original) ? undefined : running.process;
}

/** A process that was told to end may still answer: it proves nothing. */
export function runsOld({ journal, host: { running } }: UpdateInput): boolean {
  if (running === undefined || isSameProcess(running.process, journal.process)) return false;
  return running.current && running.version === journal.work.from;
}

/** True while the process lives that the last restart ends. */
export function isStillThere({ journal, host }: UpdateInput): boolean {
  return isSameProcess(host.service, journal.process);
}

/** A stale heartbeat counts only while the API server answers: without it, no kubelet could have been heard. */
function readyDeadline(
  { isReady, staleMs }: OwnNodeFacts,
  began: number,
  now: number,
  readyTimeoutMs: number,
): number {
  if (staleMs !== undefined) return now - staleMs + readyTimeoutMs;
  return isReady === false ? began + readyTimeoutMs : began;
}

/** What is wrong with the watched process; undefined while it lives and its answers stay the same. */
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

/** The file at the path runs, in the wanted version; a forced update may bring any version, as with the original. */
function isWanted({ version, current }: RunningService, journal: UpdateJournal): boolean {
  return current && (isForced(journal) || version === journal.work.signal.command.version);
}

function isForced({ work }: UpdateJournal): boolean {
  return work.signal.command.forceupdate === true;
}

function isOther({ process }: RunningService, { process: ended, work }: UpdateJournal): boolean {
  return !isSameProcess(process, ended) && !isSameProcess(process, work.original);
}

/** A signal's policy overrides the flags. */
function timesOf({ times, journal }: UpdateInput): Times {
  return { ...times, ...journal.work.policy };
}

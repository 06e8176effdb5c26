/** Owns what proves that a version runs: seen from outside after a restart, for as long as asked, on a node that has been Ready since. */

import type { UpdateJournal } from '../journal.ts';
import type { OwnNodeFacts, Working } from '../step-input.ts';
import type { Step } from '../steps/step.ts';
import type { Times } from '../times.ts';
import { revivalMs, SILENCE_MS, timesFor } from '../times.ts';
import type { RunningService } from './host.ts';
import { isSameProcess } from './host.ts';

/** The service was restarted with the new binary. */
export function afterRestart(input: Working): Step {
  const { journal, host, now } = input;
  const { running } = host;
  if (running !== undefined && runsNew(input)) return { kind: 'soak', process: running.process };
  const { version } = journal.work.signal.command;
  if (running?.current === true && running.version !== version && isOther(running, journal)) {
    return rollBack(`after the restart the service runs ${running.version} instead of ${version}`);
  }
  const { restartTimeoutMs } = timesOf(input);
  const until = (journal.since ?? now) + restartTimeoutMs;
  if (now < until) return { kind: 'await-service', until };
  return rollBack(
    `the service did not show ${version} within ${seconds(restartTimeoutMs)} of its restart${endings(input)}`,
  );
}

/** The new process has shown the wanted version once, and must stay as it is. */
export function soak(input: Working): Step {
  const { journal, host, node, now } = input;
  const { soakMs, readyTimeoutMs } = timesOf(input);
  const began = journal.since ?? now;
  const change = changeOf(input);
  if (change !== undefined)
    return rollBack(`${change} ${seconds(now - began)} after its first answer${endings(input)}`);
  if (host.running === undefined) {
    const until = began + soakMs + SILENCE_MS;
    return now < until ? { kind: 'await-service', until } : rollBack('the new process stopped answering');
  }
  const until = Math.max(began + soakMs, patienceWith(node, { began, now, readyTimeoutMs }));
  if (now < until) return { kind: 'await-service', until };
  const within = `within ${seconds(now - began)} of the new version's first answer`;
  if (node.silentMs !== undefined) return rollBack(`the kubelet has not been heard since the restart: not ${within}`);
  return node.isReady === false ? rollBack(`node not Ready ${within}`) : UNCORDON;
}

/** The service was restarted with the old binary: how that ended, or what is still to be done. */
export function provePrevious(input: Working): 'runs' | 'too late' | Step {
  if (runsOld(input)) return 'runs';
  const { journal, now } = input;
  const wholeMs = revivalMs(timesOf(input));
  const until = (journal.since ?? now) + wholeMs;
  const patience = until - wholeMs / 2;
  if (now < patience) return { kind: 'await-service', until: patience };
  if (now >= until) return 'too late';
  const { process } = journal;
  if (process !== undefined && isStillThere(input)) return { kind: 'kill', process };
  return { kind: 'await-service', until };
}

/** Seen from outside: another process than before, with the wanted version; a forced update also by its very file. */
export function runsNew({ journal, host: { running } }: Working): boolean {
  return running !== undefined && isWanted(running, journal) && isOther(running, journal);
}

/** A process that was told to end and has not yet answers as ever, but will be gone: it proves nothing. */
export function runsOld({ journal, host: { running } }: Working): boolean {
  if (running === undefined || isSameProcess(running.process, journal.process)) return false;
  return running.current && running.version === journal.work.from;
}

/** True while the process that the last restart ends still lives. */
export function isStillThere({ journal, host }: Working): boolean {
  return isSameProcess(host.service, journal.process);
}

const UNCORDON: Step = { kind: 'report', status: 'UnCordoning' };

/**
 * Until when the node may leave it open whether it is Ready. Silence counts for as long as the API server was there to
 * tell of the opposite: without one, no kubelet could have been heard.
 */
function patienceWith(
  { isReady, silentMs }: OwnNodeFacts,
  { began, now, readyTimeoutMs }: { began: number; now: number; readyTimeoutMs: number },
): number {
  if (silentMs !== undefined) return now - silentMs + readyTimeoutMs;
  return isReady === false ? began + readyTimeoutMs : began;
}

/** What became of the process under watch; undefined while it lives and tells nothing else than before. */
function changeOf({ journal, host: { running, service } }: Working): string | undefined {
  const { fresh, work } = journal;
  const { version } = work.signal.command;
  if (!isSameProcess(running?.process ?? service, fresh)) {
    return `crash loop: the process of ${version} (PID ${fresh?.pid}) ended`;
  }
  if (running === undefined || isWanted(running, journal)) return undefined;
  return running.version === version || isForced(journal)
    ? `the process of ${version} runs another file than the one at ${work.binary}`
    : `the new process calls itself ${running.version} instead of ${version}`;
}

/** By force any version may be brought, as the original's does: there the file is the proof, else what it calls itself. */
function isWanted({ version, current }: RunningService, journal: UpdateJournal): boolean {
  return isForced(journal) ? current : version === journal.work.signal.command.version;
}

function isForced({ work }: UpdateJournal): boolean {
  return work.signal.command.forceupdate === true;
}

function isOther({ process }: RunningService, { process: ended, work }: UpdateJournal): boolean {
  return !isSameProcess(process, ended) && !isSameProcess(process, work.original);
}

function timesOf({ times, journal }: Working): Times {
  return timesFor(times, journal.work.policy);
}

function rollBack(reason: string): Step {
  return { kind: 'roll-back', reason };
}

/** Of the processes that were seen to come and go since the restart. */
function endings({ host: { exits = 0 } }: Working): string {
  return exits === 0 ? '' : `; its process ended at least ${exits} ${exits === 1 ? 'time' : 'times'} since the restart`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}

/**
 * Decides which notifications people get about a plan. `standingOf` takes the state from the reading of the plan, and `notificationsOf`
 * compares it with the state in the last notifications. The state in the last notifications is small and is recorded, so that the next leader sends
 * the notifications that this leader did not send.
 */
import { hash } from 'node:crypto';
import type { NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import type { Notification, NotifiedEvent } from '../../notify/receivers.ts';
import { rfc3339 } from '../../util/clock.ts';
import { printable } from '../../util/printable.ts';
import { NOTHING_DONE } from '../assess/ended.ts';
import type { FailedTarget, PlanReading } from '../explain/plan-reading.ts';
import { holdingOf, isRemarkable } from '../explain/remarkable-waits.ts';
import type { Wait } from '../model/decision.ts';
import type { ReasonCode } from '../model/reasons.ts';
import { shownVersion, textOfFailure } from './node-rollout-status.ts';

/**
 * The state of a plan in the last notifications: the run, its phase, the number of ended waves and of all waves, the
 * number of the wave that waits for approval, the number of failures, and the reason of a long wait.
 */
export type Told = NonNullable<NonNullable<NodeRolloutStatus['notifications']>['told']>;

/** The state of a plan, as far as notifications contain it. */
export interface Standing {
  /** The plan, as `<dialect>/<namespace>/<name>`. */
  readonly plan: string;
  readonly reading: PlanReading;
  /** The run; empty before the rollout is recorded. */
  readonly run: string;
  /** The names of the waves that have ended, in order. */
  readonly wavesDone: readonly string[];
  /** The number of all waves. */
  readonly plannedWaves: number;
  /** The wait for the approval of a wave; undefined if the plan does not wait for an approval. */
  readonly approval: Wait | undefined;
  /** A wait of the plan that has lasted for LONG_MS; undefined if there is none. */
  readonly long: Wait | undefined;
}

/** Milliseconds that a wait must last before people get a notification about it. */
export const LONG_MS = 15 * 60_000;
/**
 * Milliseconds after the start or the end of a run within which a leader still sends notifications about it if the
 * state in the last notifications is unknown.
 */
const NEWS_MS = 10 * 60_000;
const LONGEST_NOTE = 600;
const MOST_FAILURES = 3;

/** These waits were requested by the policy or by a person, so people get no notification about them. */
const WANTED: ReadonlySet<ReasonCode> = new Set<ReasonCode>([
  'Paused',
  'Held',
  'Pinned',
  'WaveSettles',
  'WaveNeedsApproval',
  'RetryWaits',
  'WindowClosed',
  'WindowTooShort',
  'Blackout',
]);

/** Returns the state of the plan with the name `plan`. */
export function standingOf(plan: string, reading: PlanReading): Standing {
  const { now, run, waits } = reading;
  const unwanted = waits.filter(({ reason }) => !WANTED.has(reason.code));
  return {
    plan,
    reading,
    run: run?.name ?? '',
    ...(run === undefined ? { wavesDone: [], plannedWaves: 0 } : wavesIn(reading)),
    approval: waits.find(({ reason }) => reason.code === 'WaveNeedsApproval'),
    long: holdingOf(unwanted, now - LONG_MS),
  };
}

/** Returns the waves to tell. A plan without targets has none. */
function wavesIn(reading: PlanReading): Pick<Standing, 'wavesDone' | 'plannedWaves'> {
  const waves = reading.counts.total === 0 ? [] : reading.waves();
  const wavesDone = waves.flatMap(({ planned, ended }) =>
    Array.from({ length: ended }, (_, index) => `wave ${index + 1} of ${planned}`),
  );
  return { wavesDone, plannedWaves: waves.reduce((sum, { planned }) => sum + planned, 0) };
}

/**
 * Returns the milliseconds until a wait has lasted so long that people get a notification about it; undefined if no
 * wait leads to a notification.
 */
export function longAfter(waits: readonly Wait[], now: number): number | undefined {
  const left = waits
    .filter((wait) => isRemarkable(wait) && !WANTED.has(wait.reason.code))
    // Ten seconds are added, because `holdingOf` ignores a wait during its first seconds.
    .map(({ since }) => Date.parse(since) + LONG_MS + 10_000 - now)
    .filter((ms) => ms > 0);
  return left.length === 0 ? undefined : Math.min(...left);
}

/** Returns the state that is recorded when the notifications about this standing are queued. */
export function toldOf(standing: Standing): Told {
  const { run, reading, wavesDone, plannedWaves, approval, long } = standing;
  return {
    run,
    phase: reading.run?.recorded ?? 'new',
    waves: wavesDone.length,
    plannedWaves,
    approval: approval === undefined ? 0 : wavesDone.length + 1,
    failed: reading.counts.failed,
    waiting: long?.reason.code ?? '',
  };
}

const NOTHING: Told = { run: '', phase: 'new', waves: 0, approval: 0, failed: 0, waiting: '' };

/**
 * Returns the notifications to send. `before` is the state in the last notifications; undefined if there were none. A
 * wave that had ended before the waves were planned anew is not told.
 */
export function notificationsOf(before: Told | undefined, after: Standing): Notification[] {
  if (before === undefined && isOldNews(after)) return [];
  const isSameRun = before?.run === after.run;
  const is = toldOf(after);
  const told = isSameRun ? withWavesOf(before, is) : NOTHING;
  const { reading, wavesDone, approval, long } = after;
  const { phase } = is;
  const hasEnded = is.phase !== told.phase && reading.isOver;
  const notes: Notification[] = [];
  const tell = (event: NotifiedEvent, mark: string | number, text: string): number =>
    notes.push(noteOf(after, event, String(mark), text));
  if (!isSameRun && reading.run?.hasBegun() === true && reading.counts.total > 0)
    tell('Started', '', `${runText(reading)} has started; ${nodes(reading.counts.total)}`);
  wavesDone.slice(told.waves).forEach((wave, index) => {
    tell('WaveDone', told.waves + index + 1, `${wave} has ended; ${progressOf(reading)}`);
  });
  if (approval !== undefined && is.approval !== told.approval)
    tell('WaitingForApproval', is.approval, waitText(approval));
  if (long !== undefined && is.waiting !== told.waiting)
    tell(
      'WaitingLong',
      `${is.waiting}/${long.since}`,
      `has waited since ${long.since}: ${waitText(long)}`,
    );
  if (hasEnded && phase === 'done') tell('Done', phase, doneText(reading));
  else if (hasEnded)
    tell('Failed', phase, `ended as ${phase}: ${reading.cause?.message ?? failuresIn(reading)}`);
  else if (is.failed > told.failed)
    tell(
      'Failed',
      `${is.failed}`,
      `${is.failed} of ${nodes(reading.counts.total)} failed: ${failuresIn(reading)}`,
    );
  return notes;
}

/**
 * Returns `told` with the waves of `is` if the waves were planned anew since, for example because the policy has other
 * waves now. Nobody knows which of these waves ended before that.
 */
function withWavesOf(told: Told, is: Told): Told {
  const { plannedWaves = is.plannedWaves } = told;
  return plannedWaves === is.plannedWaves ? told : { ...told, waves: is.waves };
}

/** Returns true if the run began or ended so long ago that its first notifications would be no news. */
function isOldNews({ reading: { isOver, run, now } }: Standing): boolean {
  if (run === undefined) return false;
  const { first, last } = run.span();
  return now - Date.parse(isOver ? last : first) > NEWS_MS;
}

function noteOf(after: Standing, event: NotifiedEvent, mark: string, text: string): Notification {
  const { plan, reading, run } = after;
  const at = rfc3339(reading.now);
  const name = [reading.plan.source.uid, run, event, mark, at].join(' ');
  const message = printable(`${plan}: ${text}`);
  return {
    id: hash('sha256', name).slice(0, 16),
    event,
    plan,
    message: message.length <= LONGEST_NOTE ? message : `${message.slice(0, LONGEST_NOTE - 1)}…`,
    at,
  };
}

function waitText({ reason, ends }: Wait): string {
  return ends === undefined ? reason.message : `${reason.message}; this ends when ${ends}`;
}

function nodes(count: number): string {
  return count === 1 ? '1 node' : `${count} nodes`;
}

/** Returns what the run does, with the version. */
function runText(reading: PlanReading): string {
  const work = `the ${reading.work()}`;
  const version = shownVersion(reading);
  return version === '' ? work : `${work} to ${version}`;
}

/** Returns how a run ended that is recorded as done. It may have left nodes out, or have had none. */
function doneText(reading: PlanReading): string {
  const { counts, end } = reading;
  if (counts.total === 0)
    return `ended without ${reading.work() === 'upgrade' ? 'an upgrade' : 'a roll-back'}: ${NOTHING_DONE.message}`;
  // The nodes do not have one version, so no version is told that all of them run.
  if (end.phase === 'differs' && end.reason !== undefined)
    return `${end.reason.message}; ${progressOf(reading)}`;
  if (counts.done === counts.total) {
    const targets = reading.stages().flatMap((stage) => stage.targets);
    return targets.every(({ hadVersion }) => hadVersion)
      ? `every node ran ${shownVersion(reading)} already before its last attempt; ${progressOf(reading)}`
      : `${runText(reading)} is done; ${progressOf(reading)}`;
  }
  return `${runText(reading)} has ended, but not for every node: ${end.reason?.message ?? progressOf(reading)}`;
}

function progressOf({ counts: { done, total, failed } }: PlanReading): string {
  const failures = failed === 0 ? '' : `, ${failed} failed`;
  return `${done} of ${nodes(total)} done${failures}`;
}

function failuresIn({ findings: { failures }, counts }: PlanReading): string {
  if (failures.length === 0) return `${nodes(counts.failed)} failed`;
  const shown = failures.slice(0, MOST_FAILURES).map(failureIn);
  const others = failures.length > MOST_FAILURES ? ['and others'] : [];
  return [...shown, ...others].join('; ');
}

function failureIn(failed: FailedTarget): string {
  const text = textOfFailure(failed);
  return text === undefined ? `${failed.name} failed` : `${failed.name}: ${text}`;
}

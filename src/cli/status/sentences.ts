/** Says where targets are and what waits: one row each while they are few, one for each state when they are many. */
import type { Wait } from '../../engine/model/decision.ts';
import { RUNS_AGAIN } from '../../engine/model/reasons.ts';
import { listed } from '../../util/phrases.ts';
import { age } from '../phrases.ts';
import type { PlanView, StageView, TargetView } from './view.ts';

/** More of a kind than this share a row, so that a plan fits a screen. */
const FEW = 8;

export interface TargetRow {
  readonly name: string;
  readonly state: string;
  /** Empty if it has not begun. */
  readonly age: string;
  readonly message: string;
}

/** `w1 upgraded, verifying (40 s): node w1 is not Ready (NodeNotReady)` */
export function sentenceOf({ name, state, age: time, message }: TargetRow): string {
  return `${name} ${state}${time === '' ? '' : ` (${time})`}${message === '' ? '' : `: ${message}`}`;
}

export function rowOf(target: TargetView, wait: Wait | undefined, now: number): TargetRow {
  const { name, since, phase } = target;
  // Not every record says since when a target is about to start.
  const isUnknown = phase === 'intended' && Date.parse(since) >= now;
  return {
    name,
    state: stateOf(target),
    age: isUnknown ? '' : age(since, now),
    message: messageOf(target, wait),
  };
}

function stateOf({ phase, step = phase }: TargetView): string {
  if (phase === 'intended') return 'starting';
  if (phase === 'verifying') return 'upgraded, verifying';
  if (phase === 'failed') return step === phase ? phase : `failed at ${step}`;
  return step;
}

function messageOf(
  { phase, failure, rolledBack, gone, drains, stalled, runs }: TargetView,
  wait: Wait | undefined,
): string {
  if (phase === 'failed') {
    if (gone === true) return 'there is no such node';
    const undone = rolledBack === true ? RUNS_AGAIN : '';
    return failure === undefined || undone === '' ? (failure ?? undone) : `${failure} (${undone})`;
  }
  if (phase === 'done') return runs === undefined ? '' : `runs ${runs}`;
  // Without a gate the wait names the phase itself.
  if (wait !== undefined && wait.gate !== phase)
    return `${wait.reason.message} (${wait.reason.code})`;
  if (phase === 'working' && stalled !== undefined) return stalled;
  if (phase === 'signalled') return 'its agent has not answered yet';
  return drains === 'node' ? 'its agent cordons and drains it (see its log)' : '';
}

export function isMoving({ phase }: Pick<TargetView, 'phase'>): boolean {
  return (
    phase === 'intended' || phase === 'signalled' || phase === 'working' || phase === 'verifying'
  );
}

export function targetsOf({ stages }: Pick<PlanView, 'stages'>): readonly TargetView[] {
  return stages.flatMap(({ targets }) => targets);
}

/** The targets in progress, the longest first when they are many. */
export function movingRows(plan: PlanView, now: number): TargetRow[] {
  const waits = waitsByTarget(plan);
  const moving = targetsOf(plan).filter(isMoving);
  if (moving.length <= FEW)
    return moving.map((target) => rowOf(target, waits.get(target.name), now));
  const groups = Map.groupBy(moving, (target) => {
    const wait = waits.get(target.name);
    return `${stateOf(target)} ${wait?.gate === target.phase ? '' : wait?.reason.code}`;
  });
  return [...groups.values()]
    .map((members) => members.toSorted(byAge))
    .toSorted(([a], [b]) => (a && b ? byAge(a, b) : 0))
    .flatMap(([first, ...others]) =>
      first
        ? { ...rowOf(first, waits.get(first.name), now), name: andMore(first.name, others.length) }
        : [],
    );
}

export function waitsByTarget({ waits }: PlanView): ReadonlyMap<string | undefined, Wait> {
  return new Map(waits.map((wait) => [wait.target, wait]));
}

export function failedRows(plan: PlanView, now: number): TargetRow[] {
  const failed = targetsOf(plan).filter(({ phase }) => phase === 'failed');
  const rows = failed.slice(0, FEW).map((target) => failedRow(plan, target, now));
  if (failed.length <= FEW) return rows;
  const more = `and ${failed.length - FEW} more`;
  return [...rows, { name: more, state: 'failed', age: '', message: 'see refit status -o wide' }];
}

/** Of a failure that its agent did not report, such as at a deadline, the plan records the first reason only. */
export function failedRow({ reason = '' }: PlanView, target: TargetView, now: number): TargetRow {
  const row = rowOf(target, undefined, now);
  const events = `Events and the leader's log say why: kubectl get events -A --field-selector involvedObject.name=${row.name}`;
  const message = reason.startsWith(`${row.name} `) ? reason.slice(row.name.length + 1) : events;
  return row.message === '' ? { ...row, message } : row;
}

/** Why the plan ended or is about to; nothing if a failed target or a wait says the same. */
export function reasonLines({ reason, waits }: PlanView, failed: readonly TargetRow[]): string[] {
  if (reason === undefined || waits.some(({ reason: { message } }) => message.includes(reason)))
    return [];
  const isSaid = failed.some(
    ({ name, message }) =>
      message !== '' &&
      (`${name} ${message}` === reason || `${name}: ${message}`.startsWith(reason)),
  );
  return isSaid ? [] : [reason];
}

/** `text` without the reports of failed targets, which are shown beside each of them. */
export function withoutReports(text: string, plan: Pick<PlanView, 'stages'>): string {
  let shorter = text;
  for (const { name, failure } of targetsOf(plan)) {
    if (failure !== undefined)
      shorter = shorter.replaceAll(`${name}: ${failure}`, `${name} failed`);
  }
  return shorter;
}

export function nextRows({ next, waits }: PlanView): TargetRow[] {
  const isHeld = waits.some((wait) => wait.ofStage === true && !isRoutine(wait));
  const rows = next.map((name) => ({
    name,
    state: isHeld ? 'waiting' : 'next',
    age: '',
    message: '',
  }));
  const [first] = rows;
  return first && rows.length > FEW
    ? [{ ...first, name: andMore(first.name, rows.length - 1) }]
    : rows;
}

/** The waits that keep targets from starting. */
export function waitLines(plan: PlanView, now: number): string[] {
  const moving = movingNames(plan);
  const held = plan.waits.filter(({ target }) => target === undefined || !moving.has(target));
  const groups = Map.groupBy(held, ({ target, reason }) =>
    target === undefined ? reason.message : reason.code,
  );
  return [...groups.entries()].flatMap(([code, members]) => {
    const [first] = members.toSorted(byAge);
    if (!first || members.length <= FEW) return alikeLines(plan, members, now);
    const names = members.flatMap(({ target }) => target ?? []);
    return [
      `${members.length} nodes wait (${code}, ${age(first.since, now)}): ${listed(names, FEW)}`,
    ];
  });
}

/** Of a paused plan whose waits name only what holds it before the pause does: people fix that, and wonder that nothing starts. */
export function pauseLines({
  paused,
  waits,
  phase,
}: Pick<PlanView, 'paused' | 'waits' | 'phase'>): string[] {
  const isOpen = phase === 'new' || phase === 'running';
  const isTold = waits.some(({ reason }) => reason.code === 'Paused');
  if (paused === undefined || !isOpen || isTold) return [];
  const what = paused === 'plan' ? 'the plan' : 'its policy';
  return [`${what} is paused, too: nothing new starts until it is resumed`];
}

/** What two plans warn of, such as each other, is shown with the first. */
export function toldOnce<T extends Pick<PlanView, 'warnings'>>(plans: readonly T[]): T[] {
  const told = new Set<string>();
  return plans.map((plan) => {
    const warnings = plan.warnings?.filter((warning) => !told.has(warning));
    for (const warning of warnings ?? []) told.add(warning);
    return { ...plan, warnings };
  });
}

/** One line for all targets of which the same is said. */
function alikeLines(plan: PlanView, waits: readonly Wait[], now: number): string[] {
  const alike = Map.groupBy(waits, ({ target, reason }) =>
    target === undefined ? reason.message : withoutName(reason.message, target),
  );
  return [...alike.values()].flatMap(([first, ...others]) => {
    if (!first) return [];
    const names = others.flatMap(({ target }) => target ?? []);
    const same = names.length === 0 ? '' : `; the same holds for ${listed(names, FEW)}`;
    return `${withoutReports(waitLine(first, now), plan)}${same}`;
  });
}

/** One line for all nodes of which the same is said. */
export function cordonLines({ cordoned = [] }: Pick<PlanView, 'cordoned'>): string[] {
  const alike = Map.groupBy(cordoned, ({ target, message }) => withoutName(message, target));
  return [...alike.values()].flatMap(([first, ...others]) => {
    if (!first) return [];
    const names = others.map(({ target }) => target);
    return names.length === 0
      ? first.message
      : `${first.message}; the same holds for ${listed(names, FEW)}`;
  });
}

/** What is left is equal for targets of which the same is said. */
function withoutName(message: string, name: string): string {
  return message
    .split(' ')
    .map((word) => (word.replace(/[:,;]$/, '') === name ? '' : word))
    .join(' ');
}

/** What ends these waits, each end once. */
export function endLines(waits: readonly Wait[]): string[] {
  return [...new Set(waits.flatMap(({ ends }) => ends ?? []))].map((ending) => `when ${ending}`);
}

const ROUTINE: ReadonlySet<string> = new Set([
  // The leader only has to record it.
  'Completed',
  'InFlight',
  'Intended',
  'Signalled',
  'NoFreeSlot',
  'EarlierStage',
]);

/** True if the target is only being worked on, or waits for its turn. */
export function isRoutine({ reason }: Pick<Wait, 'reason'>): boolean {
  return ROUTINE.has(reason.code);
}

export function movingNames(plan: PlanView): ReadonlySet<string> {
  return new Set(targetsOf(plan).flatMap((target) => (isMoving(target) ? target.name : [])));
}

function waitLine({ gate, reason, since }: Wait, now: number): string {
  // Since when a plan is invalid or aborted nobody records.
  const time = gate === 'plan-valid' || gate === 'not-aborted' ? [] : [age(since, now)];
  return `${reason.message} (${[...(isRoutine({ reason }) ? [] : [reason.code]), ...time].join(', ')})`;
}

function andMore(name: string, count: number): string {
  return count === 0 ? name : `${name} and ${count} more`;
}

function byAge(a: { readonly since: string }, b: { readonly since: string }): number {
  return Date.parse(a.since) - Date.parse(b.since);
}

export function percentOf(plan: PlanView): number {
  const targets = targetsOf(plan);
  if (targets.length === 0) return 0;
  const done = targets.filter(({ phase }) => phase === 'done').length;
  return Math.floor((100 * done) / targets.length);
}

/** Milliseconds; undefined before the first node is done, and while something holds the plan. */
export function remainingOf(plan: PlanView): number | undefined {
  const { phase, paused, waits, stages } = plan;
  if (phase !== 'running' || paused !== undefined || !waits.every(isRoutine)) return undefined;
  const each = typicalTime(plan);
  if (each === undefined) return undefined;
  let rounds = 0;
  for (const stage of stages) rounds += roundsOf(stage);
  return each * rounds;
}

/** The median of what finished nodes took, as their agents report it; undefined if none reports it. */
function typicalTime(plan: PlanView): number | undefined {
  const times = timesIn(targetsOf(plan).filter((target) => target.phase === 'done'));
  return times[Math.floor(times.length / 2)];
}

/** How often the slots of the stage are filled until none of its targets is left. */
function roundsOf({ targets, maxInFlight }: StageView): number {
  const open = targets.filter((target) => target.phase === 'pending' || isMoving(target)).length;
  return Math.ceil(open / Math.max(1, maxInFlight));
}

/** Milliseconds of all steps together, of each that tells them; sorted. */
export function timesIn(reports: readonly Pick<TargetView, 'spent'>[]): number[] {
  const times = reports.map(({ spent = {} }) =>
    Object.values(spent).reduce((sum, ms) => sum + ms, 0),
  );
  return times.filter((ms) => ms > 0).toSorted((a, b) => a - b);
}

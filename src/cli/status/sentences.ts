/** Describes targets and waits. If there are few targets, each has a row of its own; otherwise there is one row for each state. */

import { type Counts, percentOf as percentDone } from '../../engine/explain/progress.ts';
import { isRoutine } from '../../engine/explain/routine-waits.ts';
import type { Wait } from '../../engine/model/decision.ts';
import { RUNS_AGAIN } from '../../engine/model/reasons.ts';
import { isInProgress, isOpenPlan } from '../../engine/model/shown-phases.ts';
import { isPartOf, tellsOnly } from '../../engine/reasons/about-target.ts';
import { listed } from '../../util/phrases.ts';
import { age } from '../phrases.ts';
import type { HoldJson, ShownPlan, StageJson, TargetJson } from './json-form.ts';

/** The most targets in the same state that have rows of their own. More targets share a row, so that a plan fits on a screen. */
const FEW = 8;

/** What is said of a target that is done, and whose Node was deleted since. */
export const GONE = 'there is no such node any more';

export interface TargetRow {
  readonly name: string;
  readonly state: string;
  /** The time since the last change as text; empty if the target has not begun. */
  readonly age: string;
  readonly message: string;
}

/** Returns a row as a sentence: `w1 upgraded, verifying (40 s): node w1 is not Ready (NodeNotReady)`. */
export function sentenceOf({ name, state, age: time, message }: TargetRow): string {
  return `${name} ${state}${time === '' ? '' : ` (${time})`}${message === '' ? '' : `: ${message}`}`;
}

export function rowOf(
  plan: Pick<ShownPlan, 'goesBack'>,
  target: TargetJson,
  wait: Wait | undefined,
  now: number,
): TargetRow {
  const { name, since, phase } = target;
  // The age is left out if the record does not contain the time at which the target reached this phase.
  const isUnknown = phase === 'intended' && Date.parse(since) >= now;
  return {
    name,
    state: stateOf(plan, target),
    age: isUnknown ? '' : age(since, now),
    message: messageOf(target, wait),
  };
}

function stateOf(
  { goesBack }: Pick<ShownPlan, 'goesBack'>,
  { phase, step = phase }: TargetJson,
): string {
  if (phase === 'intended') return 'starting';
  if (phase === 'verifying') return `${goesBack === true ? 'rolled back' : 'upgraded'}, verifying`;
  if (phase === 'failed') return step === phase ? phase : `failed at ${step}`;
  return step;
}

function messageOf(
  { phase, failure, rolledBack, gone, drains, stalled, runs, agent }: TargetJson,
  wait: Wait | undefined,
): string {
  if (phase === 'failed') {
    if (gone === true) return 'there is no such node';
    const undone = rolledBack === true ? RUNS_AGAIN : '';
    return failure === undefined || undone === '' ? (failure ?? undone) : `${failure} (${undone})`;
  }
  if (phase === 'done' && gone === true) return GONE;
  if (phase === 'done') return runs === undefined ? '' : `runs ${runs}`;
  // If the gate of a wait is the same as the phase of the target, the wait says nothing new, because the row already
  // shows the phase.
  if (wait !== undefined && wait.gate !== phase)
    return `${wait.reason.message} (${wait.reason.code})`;
  if (phase === 'working' && stalled !== undefined) return stalled;
  // Without an agent, a Job or the leader does the work.
  const hasAgent = agent !== undefined;
  if (phase === 'signalled')
    return hasAgent ? 'its agent has not answered yet' : 'its work has not begun yet';
  if (drains !== 'node') return '';
  return hasAgent
    ? 'its agent cordons and drains the node (see the log of the agent)'
    : 'the node is cordoned and drained by its own work';
}

export function isMoving(target: Pick<TargetJson, 'phase'>): boolean {
  return isInProgress(target);
}

export function targetsOf({ stages }: Pick<ShownPlan, 'stages'>): readonly TargetJson[] {
  return stages.flatMap(({ targets }) => targets);
}

/**
 * Returns a row for each target in progress. If there are many, the targets in the same state share a row. The rows are
 * sorted by age, and the oldest is the first.
 */
export function movingRows(plan: ShownPlan, now: number): TargetRow[] {
  const waits = waitsByTarget(plan);
  const moving = targetsOf(plan).filter(isMoving);
  if (moving.length <= FEW)
    return moving.map((target) => rowOf(plan, target, waits.get(target.name), now));
  const groups = Map.groupBy(moving, (target) => {
    const wait = waits.get(target.name);
    return `${stateOf(plan, target)} ${wait?.gate === target.phase ? '' : wait?.reason.code}`;
  });
  return [...groups.values()]
    .map((members) => members.toSorted(byAge))
    .toSorted(([a], [b]) => (a && b ? byAge(a, b) : 0))
    .flatMap(([first, ...others]) =>
      first
        ? {
            ...rowOf(plan, first, waits.get(first.name), now),
            name: andMore(first.name, others.length),
          }
        : [],
    );
}

export function waitsByTarget({ waits }: ShownPlan): ReadonlyMap<string | undefined, Wait> {
  return new Map(waits.map((wait) => [wait.target, wait]));
}

export function failedRows(plan: ShownPlan, now: number): TargetRow[] {
  const failed = targetsOf(plan).filter(({ phase }) => phase === 'failed');
  const rows = failed.slice(0, FEW).map((target) => failedRow(plan, target, now));
  if (failed.length <= FEW) return rows;
  const more = `and ${failed.length - FEW} more`;
  return [...rows, { name: more, state: 'failed', age: '', message: 'see refit status -o wide' }];
}

/**
 * Returns the row of a failed target. If neither the node nor a record says why the target failed, the message is the
 * failed hook of the target, or else it says where to look.
 */
export function failedRow(plan: ShownPlan, target: TargetJson, now: number): TargetRow {
  const row = rowOf(plan, target, undefined, now);
  const events = `the reason is not recorded; Events may have it: kubectl get events -A --field-selector involvedObject.name=${row.name}`;
  const message = failedHook(plan, target) ?? events;
  return row.message === '' ? { ...row, message } : row;
}

/** Returns the failure of the last hook of the target as a clause; undefined if none has failed. */
function failedHook({ hooks = [] }: ShownPlan, { name }: TargetJson): string | undefined {
  const found = hooks.find(({ target, state }) => target === name && state === 'Failed');
  return found && `the hook ${found.hook} failed: ${found.message ?? 'it gave no reason'}`;
}

/**
 * Returns the reason of the plan without the advice about an edit, because the section `to do` has this advice for the
 * dialect of the plan.
 */
export function reasonOf({ edit, reason }: Pick<ShownPlan, 'edit' | 'reason'>): string | undefined {
  return edit ?? reason;
}

/**
 * Returns why the plan ended or is about to end. Returns no lines if a failed target or a wait already shows the same
 * reason.
 */
export function reasonLines(plan: ShownPlan, failed: readonly TargetRow[]): string[] {
  const { waits } = plan;
  const reason = reasonOf(plan);
  if (reason === undefined || waits.some((wait) => isPartOf(reason, wait.reason))) return [];
  // The failure of a Job is also the reason of its plan. An abort is about the plan, whichever targets it made fail.
  const isOfTarget = plan.reasonCode !== 'Aborted';
  const isSaid = failed.some(
    ({ name, message }) =>
      message !== '' && (tellsOnly(name, message, reason) || (isOfTarget && message === reason)),
  );
  return isSaid ? [] : [reason];
}

/** Returns the text with short words in place of the reports of failed targets, because the output shows each report with its target. */
export function withoutReports(text: string, plan: Pick<ShownPlan, 'stages'>): string {
  let shorter = text;
  for (const { name, failure } of targetsOf(plan)) {
    if (failure !== undefined)
      shorter = shorter.replaceAll(`${name}: ${failure}`, `${name} failed`);
  }
  return shorter;
}

export function nextRows({ next, waits }: ShownPlan): TargetRow[] {
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

/** Returns a line for each wait that prevents targets from starting, except for holds, which have lines of their own. */
export function waitLines(plan: ShownPlan, now: number): string[] {
  const moving = movingNames(plan);
  const held = new Set<string | undefined>(heldTargets(plan).map(({ name }) => name));
  const blocking = plan.waits.filter(
    ({ target, reason }) =>
      (target === undefined || !moving.has(target)) &&
      !(reason.code === 'Held' && held.has(target)),
  );
  const groups = Map.groupBy(blocking, ({ target, reason }) =>
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

/** Returns one line for each target that people hold. If there are many, the last line says how many more there are. */
export function heldLines(held: readonly (HoldJson & { readonly name: string })[]): string[] {
  const shown = held.slice(0, FEW).map(({ name, by, reason, until }) => {
    const who = by === undefined ? '' : ` by ${by}`;
    const why = reason === undefined ? '' : `: ${reason}`;
    const end = until === undefined ? '' : `at ${until}, or `;
    return `${name} is held${who}${why} (ends ${end}with refit unhold ${name})`;
  });
  return [...shown, ...(held.length > FEW ? [`and ${held.length - FEW} more`] : [])];
}

/**
 * Returns a sentence that says why the plan has skipped a target. The reason is not recorded, so the sentence is
 * certain only if the hold or the pin of the target still exists.
 */
export function sentenceOfSkipped({
  name,
  held,
  pinned,
  gone,
}: Pick<TargetJson, 'name' | 'held' | 'pinned' | 'gone'>): string {
  if (gone === true) return `the plan left it out: the Node of ${name} does not exist`;
  const [hold] = held ? heldLines([{ name, ...held }]) : [];
  return `the plan left it out: ${hold ?? pinned ?? `${name} could not be drained, or was held or pinned then`}`;
}

/** Returns the targets that people hold, each once. */
export function heldTargets(plan: Pick<ShownPlan, 'stages'>) {
  const held = targetsOf(plan).flatMap(({ name, held }) => (held ? [{ name, ...held }] : []));
  return [...new Map(held.map((each) => [each.name, each])).values()];
}

/**
 * Returns lines about the targets of a running plan that wait and whose Nodes have been deleted. Without these lines,
 * people would learn only at the end of the plan that it ends because of them, or leaves them out.
 */
export function missingLines({
  phase,
  reason,
  stages,
  leavesOutGone,
}: Pick<ShownPlan, 'phase' | 'reason' | 'stages' | 'leavesOutGone'>): string[] {
  // A plan that is about to end starts no target any more, and its reason says why.
  if (phase !== 'running' || reason !== undefined) return [];
  const missing = stages.flatMap(({ role, targets }) =>
    targets
      .filter((target) => target.phase === 'pending' && target.gone === true)
      .map(({ name }) => ({ name, isLeftOut: leavesOutGone === true && role !== 'controller' })),
  );
  const namesOf = (isLeftOut: boolean): string[] => [
    ...new Set(missing.filter((each) => each.isLeftOut === isLeftOut).map(({ name }) => name)),
  ];
  return [
    ...missingLine(namesOf(false), 'the plan ends as incomplete at the turn of a missing node'),
    ...missingLine(namesOf(true), 'the plan goes on without a missing node at its turn'),
  ];
}

function missingLine(names: readonly string[], effect: string): string[] {
  if (names.length === 0) return [];
  const [are, join] = names.length === 1 ? ['is', 'it joins'] : ['are', 'they join'];
  return [
    `${listed(names, FEW)} ${are} not in the cluster: unless ${join} again before then, ${effect}`,
  ];
}

/**
 * Returns a line about the pause if no wait names the pause. Without this line, people would fix the cause that a wait names, and wonder
 * why nothing starts. A pause of an aborted plan is not told, because nothing starts after a resumption either.
 */
export function pauseLines({
  abort,
  paused,
  waits,
  phase,
}: Pick<ShownPlan, 'abort' | 'paused' | 'waits' | 'phase'>): string[] {
  const isOpen = isOpenPlan({ phase }) && abort === undefined;
  const isTold = waits.some(({ reason }) => reason.code === 'Paused');
  if (paused === undefined || !isOpen || isTold) return [];
  const what = paused === 'plan' ? 'the plan' : 'its policy';
  return [`${what} is paused, too: nothing new starts until it is resumed`];
}

/**
 * Returns the plans without the warnings that an earlier plan of the list also has, because two plans may warn about each other in the same
 * words.
 */
export function toldOnce<T extends Pick<ShownPlan, 'warnings'>>(plans: readonly T[]): T[] {
  const told = new Set<string>();
  return plans.map((plan) => {
    const warnings = plan.warnings?.filter((warning) => !told.has(warning));
    for (const warning of warnings ?? []) told.add(warning);
    return { ...plan, warnings };
  });
}

/** Returns one line for each group of waits whose messages differ only in the name of the target. */
function alikeLines(plan: ShownPlan, waits: readonly Wait[], now: number): string[] {
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

/** Returns one line for each group of cordoned nodes whose messages differ only in the name of the node. */
export function cordonLines({ cordoned = [] }: Pick<ShownPlan, 'cordoned'>): string[] {
  const alike = Map.groupBy(cordoned, ({ target, message }) => withoutName(message, target));
  return [...alike.values()].flatMap(([first, ...others]) => {
    if (!first) return [];
    const names = others.map(({ target }) => target);
    return names.length === 0
      ? first.message
      : `${first.message}; the same holds for ${listed(names, FEW)}`;
  });
}

/** Returns the message without the name of the target, so that it can be compared with the messages of other targets. */
function withoutName(message: string, name: string): string {
  return message
    .split(' ')
    .map((word) => (word.replace(/[:,;]$/, '') === name ? '' : word))
    .join(' ');
}

/**
 * Returns a line for each event that ends at least one of these waits. If an event ends several waits, it still has
 * only one line.
 */
export function endLines(waits: readonly Wait[]): string[] {
  return [...new Set(waits.flatMap(({ ends }) => ends ?? []))].map((ending) => `when ${ending}`);
}

export function movingNames(plan: ShownPlan): ReadonlySet<string> {
  return new Set(targetsOf(plan).flatMap((target) => (isMoving(target) ? target.name : [])));
}

function waitLine({ gate, reason, since }: Wait, now: number): string {
  // The time is left out for an invalid or aborted plan, because no record says since when the plan is in this state.
  const time = gate === 'plan-valid' || gate === 'not-aborted' ? [] : [age(since, now)];
  return `${reason.message} (${[...(isRoutine({ reason }) ? [] : [reason.code]), ...time].join(', ')})`;
}

function andMore(name: string, count: number): string {
  return count === 0 ? name : `${name} and ${count} more`;
}

function byAge(a: { readonly since: string }, b: { readonly since: string }): number {
  return Date.parse(a.since) - Date.parse(b.since);
}

/** Returns how many targets there are, and how many of them are done, as people see them now. */
export function progressIn(
  targets: readonly Pick<TargetJson, 'phase'>[],
): Pick<Counts, 'total' | 'done'> {
  return {
    done: targets.filter(({ phase }) => phase === 'done').length,
    total: targets.length,
  };
}

/** Returns the percentage of the targets that are done. */
export function percentOf(plan: Pick<ShownPlan, 'stages'>): number {
  return percentDone(progressIn(targetsOf(plan)));
}

/**
 * The most milliseconds for which an agent usually leaves its signal unanswered. A plan whose agents are silent for a
 * longer time has no estimate.
 */
const SILENT_MS = 30_000;

/** Returns false if no leader carries the plan out, or if it will wait for a person or for a certain time before it ends. */
export function hasForeseeableEnd({
  stopsAhead = [],
  leaderless,
}: Pick<ShownPlan, 'stopsAhead' | 'leaderless'>): boolean {
  return stopsAhead.length === 0 && leaderless !== true;
}

/**
 * Returns the estimated milliseconds until the plan ends. Returns undefined before the first node is done, while the
 * plan waits, if its end is not foreseeable, and while an agent does not answer. A wait of a node in progress counts
 * only once it lasts longer than a whole node usually takes.
 */
export function remainingOf(plan: ShownPlan, now: number): number | undefined {
  const { phase, waits, stages } = plan;
  if (phase !== 'running' || !hasForeseeableEnd(plan)) return undefined;
  const each = typicalTime(plan);
  if (each === undefined) return undefined;
  const moving = movingNames(plan);
  const isShort = ({ target, since }: Wait): boolean =>
    target !== undefined && moving.has(target) && now - Date.parse(since) <= each;
  if (waits.some((wait) => !isRoutine(wait) && !isShort(wait))) return undefined;
  const isSilent = ({ phase: state, since }: TargetJson): boolean =>
    state === 'signalled' && now - Date.parse(since) > SILENT_MS;
  if (targetsOf(plan).some(isSilent)) return undefined;
  let rounds = 0;
  for (const stage of stages) rounds += roundsOf(stage);
  return each * rounds;
}

/** Returns the median time of the finished nodes in milliseconds, from the reports of their agents; undefined if no agent reports it. */
function typicalTime(plan: ShownPlan): number | undefined {
  const times = timesIn(targetsOf(plan).filter((target) => target.phase === 'done'));
  return times[Math.floor(times.length / 2)];
}

/** Returns how many times the slots of the stage must be filled until all of its targets have ended. */
function roundsOf({ targets, maxInFlight }: StageJson): number {
  const open = targets.filter((target) => target.phase === 'pending' || isMoving(target)).length;
  return Math.ceil(open / Math.max(1, maxInFlight));
}

/** Returns the duration of all steps together for each report that has steps, in milliseconds, the shortest first. */
export function timesIn(reports: readonly Pick<TargetJson, 'spent'>[]): number[] {
  const times = reports.map(({ spent = {} }) =>
    Object.values(spent).reduce((sum, ms) => sum + ms, 0),
  );
  return times.filter((ms) => ms > 0).toSorted((a, b) => a - b);
}

/**
 * Returns the version to which the plan upgrades the target. A plan that was edited has upgraded, or upgrades, a target
 * that started before the edit to the version that it had before.
 */
export function wantedVersion(
  { phase }: Pick<ShownPlan, 'phase'>,
  { version }: { readonly version: string },
  { asked, runs }: Pick<TargetJson, 'asked' | 'runs'>,
): string {
  return asked ?? (phase === 'edited' ? runs : undefined) ?? version;
}

/** Writes the text form of `refit status`: notes, then for each plan a header, stages, targets, waits and what to do. */

import { isRoutine } from '../../engine/explain/routine-waits.ts';
import { shortId } from '../../engine/model/runs.ts';
import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import { isK0sLeader } from '../../signal/names.ts';
import { snapshotSentence } from '../../signal/snapshot-sentence.ts';
import { formatDuration } from '../../util/duration.ts';
import { listed, listedSentences } from '../../util/phrases.ts';
import { toDo } from '../advice/advice.ts';
import type { LeaseName } from '../contract/session-dialect.ts';
import type { Medium, Style } from '../output.ts';
import { age, aligned, type LinePart, partLines, wrapped } from '../phrases.ts';
import { statusHookSection } from './hook-section.ts';
import type { ShownPlan, ShownStatus, StageJson, TargetJson } from './json-form.ts';
import type { LeaderView } from './load.ts';
import { picture } from './picture.ts';
import * as sentences from './sentences.ts';
import { silenceSection } from './silence-section.ts';
import { wideTable } from './wide-table.ts';

export interface Section {
  readonly heading: string;
  readonly lines: readonly string[];
  readonly style?: Style;
}

/** The most names in a list. The other names are only counted. */
const FEW = 8;
/**
 * The fewest columns for the messages in a table. If fewer are left, the table has the form for narrow terminals.
 */
const NARROW = 20;
/** Estimates are rounded to a multiple of this many milliseconds. */
const COARSE_MS = 10_000;
/** The number of columns that the heading of a section takes, with the spaces around it. */
const MARGIN = 10;

export function renderPlan(
  plan: ShownPlan,
  form: 'text' | 'wide',
  now: number,
  medium: Medium,
): string[] {
  const failed = sentences.failedRows(plan, now);
  const ahead = sentences
    .targetsOf(plan)
    .flatMap(({ name, fetchesAhead }) => (fetchesAhead === true ? [name] : []));
  const sections: readonly Section[] = [
    { heading: 'why', lines: sentences.reasonLines(plan, failed), style: 'red' },
    stoppedSection(plan),
    rollBackSection(plan),
    { heading: 'waits', lines: sentences.waitLines(plan, now), style: 'yellow' },
    heldSection(plan),
    missingSection(plan),
    { heading: 'paused', lines: sentences.pauseLines(plan) },
    {
      heading: 'ends',
      lines: sentences.endLines(plan.waits.filter((wait) => !isRoutine(wait))),
    },
    { heading: 'cordon', lines: sentences.cordonLines(plan) },
    joinedSection(plan),
    { heading: 'decided', lines: plan.decided ?? [] },
    warningSection(plan),
    checkSection(plan, now),
    statusHookSection(plan, now),
    // Silences are shown only if they have a problem.
    ...(plan.silencing?.isGood === false ? [silenceSection(plan, now)] : []),
    { heading: 'unknown', lines: plan.unseen ?? [] },
    ...(form === 'wide' ? [wayBackSection(plan.wayBack)] : []),
    snapshotSection(sentences.targetsOf(plan)),
    { heading: 'agents', lines: agentLines(plan) },
    {
      heading: 'ahead',
      lines: ahead.length === 0 ? [] : [`downloading the new version: ${listed(ahead, FEW)}`],
    },
    { heading: 'to do', lines: medium.advises === false ? [] : toDo(plan) },
  ];
  const targets =
    form === 'wide'
      ? wideTable(plan, now, medium)
      : [...picture(plan, medium), ...targetTable(plan, failed, now, medium)];
  return [
    ...header(plan, now, medium),
    ...[...stageBars(plan.stages, medium), ...targets].map((line) => `  ${line}`),
    ...renderSections(sections, medium),
  ];
}

/** Returns the section that says why targets of an ended plan never started. */
export function stoppedSection({ stopped }: Pick<ShownPlan, 'stopped'>): Section {
  return { heading: 'stopped', lines: stopped === undefined ? [] : [stopped] };
}

/** Returns the section that says whether the leader rolls the plan back. */
export function rollBackSection({ rollBack }: Pick<ShownPlan, 'rollBack'>): Section {
  return { heading: 'rollback', lines: rollBack === undefined ? [] : [rollBack] };
}

/** Returns the section that says whether upgraded nodes can go back. */
export function wayBackSection(way: ShownPlan['wayBack']): Section {
  return { heading: 'way back', lines: way === undefined ? [] : [`${way.state}: ${way.message}`] };
}

/** Returns the section about the snapshots of etcd that these targets took. */
export function snapshotSection(targets: readonly TargetJson[]): Section {
  const lines = targets.flatMap(({ name, etcdSnapshot }) =>
    etcdSnapshot === undefined ? [] : [snapshotSentence(name, etcdSnapshot)],
  );
  return { heading: 'snapshot', lines };
}

/** Returns the section of the targets that people hold. */
export function heldSection(plan: ShownPlan): Section {
  const lines = sentences.heldLines(sentences.heldTargets(plan));
  const effect = lines.length === 0 ? undefined : plan.texts.advice.effectOfHolds(plan);
  return { heading: 'held', lines: effect === undefined ? lines : [...lines, effect] };
}

/** Returns the section of the targets that wait although their Nodes have been deleted. */
export function missingSection(
  plan: Pick<ShownPlan, 'phase' | 'reason' | 'stages' | 'leavesOutGone'>,
): Section {
  return { heading: 'missing', lines: sentences.missingLines(plan), style: 'yellow' };
}

/**
 * Returns the section about nodes that joined after the plan began. If `node` is set, the section is only about the
 * node with that name.
 */
export function joinedSection({ joined = [] }: Pick<ShownPlan, 'joined'>, node?: string): Section {
  const told = joined.filter(({ name }) => node === undefined || name === node);
  const lines = told.length === 0 ? [] : [listedSentences(told.map(({ message }) => message))];
  const isLeftOut = told.some(({ included }) => !included);
  return { heading: 'joined', lines, ...(isLeftOut ? { style: 'yellow' } : {}) };
}
export function warningSection({ warnings = [] }: Pick<ShownPlan, 'warnings'>): Section {
  return { heading: 'warning', lines: warnings, style: 'yellow' };
}

const CHECKED = { Passing: 'passes', Failing: 'fails', Unknown: 'has no answer' } as const;

/** Returns the section with the results of the health checks. */
export function checkSection({ checks = [] }: Pick<ShownPlan, 'checks'>, now: number): Section {
  const lines = checks.map(({ name, state, message, since }) => {
    const known = since === undefined ? '' : ` for ${age(since, now)}`;
    return `${name} ${CHECKED[state]}${known}: ${message}`;
  });
  return { heading: 'checks', lines };
}

export function renderSections(sections: readonly Section[], { paint, width }: Medium): string[] {
  return sections.flatMap(({ heading, lines, style }) =>
    lines
      .flatMap((line) => wrapped(line, width - MARGIN))
      .map(
        (line, index) =>
          `  ${(index === 0 ? heading : '').padEnd(MARGIN - 3)} ${paint(style, line)}`,
      ),
  );
}

/** Returns the first line of a plan, or several lines on a narrow terminal. Nothing is cut. */
export function header(plan: ShownPlan, now: number, medium: Medium, prefix = ''): string[] {
  const versions = versionsOf(plan);
  const parts: LinePart[] = [
    { text: prefix, gap: '' },
    { text: titleOf(plan), style: 'bold', gap: '' },
    { text: stateAndCounts(plan), style: styleOf(plan), gap: '  ' },
    ...timesOf(plan, now).map((text) => ({ text, gap: ' ' })),
    ...(versions === '' ? [] : [{ text: aimOf(plan, versions), gap: '  ' }]),
  ];
  return partLines(parts, medium);
}

/** If the plan was edited after its end, it has not upgraded any node to its versions. */
function aimOf({ phase }: ShownPlan, versions: string): string {
  return phase === 'edited' ? `(its spec now says ${versions})` : `to ${versions}`;
}

function distinct(versions: readonly string[]): string {
  return [...new Set(versions)].filter((version) => version !== '').join(', then ');
}

/**
 * Returns the versions to which the plan upgrades its nodes. A node that started before an edit of the plan keeps the
 * version that the plan named then.
 */
function versionsOf(plan: ShownPlan): string {
  const now = distinct(plan.stages.map(({ version }) => version));
  const targets = sentences.targetsOf(plan);
  const earlier = distinct(targets.flatMap(({ asked = '' }) => asked));
  if (plan.phase === 'edited' || earlier === '') return now;
  return targets.every(({ asked }) => asked !== undefined)
    ? `${earlier} (edited since to ${now}; no node has started with it)`
    : `${now} (before the edit to ${earlier})`;
}

/**
 * Returns the versions to which the plan has upgraded or upgrades its nodes, for a place that names no edit. If the plan
 * was edited after its end, these are the versions that it installed.
 */
export function broughtVersions(plan: ShownPlan): string {
  if (plan.phase !== 'edited') return versionsOf(plan);
  const versions = plan.stages.flatMap(({ version, targets }) =>
    targets.filter(({ phase }) => phase === 'done').map(({ asked = version }) => asked),
  );
  return distinct(versions);
}

function stateAndCounts(plan: ShownPlan): string {
  const { done, total } = sentences.progressIn(sentences.targetsOf(plan));
  return total === 0 ? plan.phase : `${plan.phase} ${done}/${total}`;
}

function styleOf(plan: ShownPlan): Style {
  if (isOpenPlan(plan)) return 'cyan';
  return plan.phase === 'done' ? 'green' : 'red';
}

export function titleOf({
  id,
  uid,
  cluster,
  ...plan
}: Pick<ShownPlan, 'kind' | 'namespace' | 'name' | 'uid' | 'id' | 'cluster'>) {
  const of = cluster === undefined ? '' : ` of Cluster ${cluster}`;
  // An id that is only the uid tells people nothing.
  return `${fullNameOf(plan)}${of}${id === '' || id === uid ? '' : ` (${shortId(id)})`}`;
}

/** Returns the kind and the name of a plan, such as `Plan system-upgrade/k3s-server`. */
export function fullNameOf({
  kind,
  namespace,
  name,
}: Pick<ShownPlan, 'kind' | 'namespace' | 'name'>): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

const STATES: Readonly<Partial<Record<ShownPlan['phase'], string>>> = {
  failed: 'has failed',
  differs: 'has ended, but its nodes do not run what it says',
  empty: 'has ended without upgrading a node',
};

/** Returns the state as a predicate, such as `is running`. */
export function stateOf({ phase }: Pick<ShownPlan, 'phase'>): string {
  return STATES[phase] ?? `is ${phase}`;
}

/** Returns how long the run takes or took. `refit history` counts from the same time. */
function timesOf(plan: ShownPlan, now: number): string[] {
  const { created, started: began = created, ended } = plan;
  if (isOpenPlan(plan)) return [[`for ${age(began, now)}`, ...progressOf(plan, now)].join(', ')];
  // A plan that continues after an edit may be paused before the edit.
  const isPaused = plan.paused !== undefined && plan.texts.advice.corrected !== undefined;
  const took =
    ended === undefined ? [] : [`after ${age(began, Date.parse(ended))}`, `${age(ended, now)} ago`];
  const words = [...took, ...(isPaused ? ['paused'] : [])].join(', ');
  return words === '' ? [] : [words];
}

export function progressOf(plan: ShownPlan, now: number): string[] {
  const left = sentences.remainingOf(plan, now);
  return [...progressWords(plan), ...(left ? [remainingText(left)] : [])];
}

/**
 * Returns the same as `progressOf`, with the range that the leader has recorded in place of an own estimate, so that one
 * reader never sees two estimates.
 */
export function progressWithin(plan: ShownPlan, expected: ExpectedEnd, now: number): string[] {
  return [...progressWords(plan), rangeText(expected, now)];
}

/** The RFC 3339 times between which a plan probably ends. */
export type ExpectedEnd = Readonly<Record<'earliest' | 'latest', string>>;

function rangeText({ earliest, latest }: ExpectedEnd, now: number): string {
  const until = (at: string): number => Math.max(0, Date.parse(at) - now) / COARSE_MS;
  const from = Math.floor(until(earliest)) * COARSE_MS;
  const to = Math.max(1, Math.ceil(until(latest))) * COARSE_MS;
  return from === 0
    ? `less than ${formatDuration(to)} left`
    : `${formatDuration(from)} to ${formatDuration(to)} left`;
}

function progressWords(plan: ShownPlan): string[] {
  const percent = sentences.percentOf(plan);
  return [
    ...(percent > 0 ? [`${percent} %`] : []),
    ...stopOf(plan),
    ...(isHeldByWindow(plan) ? ['waits for its window'] : []),
  ];
}

/** Returns a word for what a person did so that nothing starts. A plan that was aborted cannot be resumed. */
function stopOf({ abort, paused }: Pick<ShownPlan, 'abort' | 'paused'>): string[] {
  if (abort !== undefined) return ['aborted'];
  return paused === undefined ? [] : ['paused'];
}

/**
 * Returns true if no target is in progress and a stage waits only for a maintenance window or for the end of a
 * blackout.
 */
function isHeldByWindow(plan: ShownPlan): boolean {
  if (plan.paused !== undefined || sentences.movingNames(plan).size > 0) return false;
  return plan.waits.some(({ reason, ofStage }) => ofStage === true && TIMED.has(reason.code));
}

const TIMED: ReadonlySet<string> = new Set(['WindowClosed', 'WindowTooShort', 'Blackout']);

function remainingText(ms: number): string {
  return ms < COARSE_MS
    ? `less than ${formatDuration(COARSE_MS)} left`
    : `about ${formatDuration(Math.ceil(ms / COARSE_MS) * COARSE_MS)} left`;
}

/**
 * Returns lines about the nodes on which an agent other than the agent of Refit acts, and about what that agent does
 * not do.
 */
export function agentLines(plan: ShownPlan): string[] {
  if (plan.phase === 'done') return [];
  const others = sentences.targetsOf(plan).filter(({ agent }) => agent?.lacks !== undefined);
  const byAgent = Map.groupBy(others, ({ agent }) => agent?.title);
  return [...byAgent].map(([title, targets]) => {
    const names = new Set(targets.map(({ name }) => name));
    return `${title} on ${listed([...names], FEW)}: ${targets[0]?.agent?.lacks}`;
  });
}

function targetTable(
  plan: ShownPlan,
  failed: sentences.TargetRow[],
  now: number,
  { paint, width }: Medium,
): string[] {
  const rows = [...failed, ...sentences.movingRows(plan, now), ...sentences.nextRows(plan)];
  if (rows.length === 0) return [];
  const longest = Math.max(
    ...rows.map(({ name, state, age: time }) => name.length + state.length + time.length),
  );
  const lines = aligned(longest + NARROW > width ? narrowRows(rows) : wideRows(rows), width - 2);
  return lines.flatMap((row, index) =>
    index > 0 && index <= failed.length ? row.map((it) => paint('red', it)) : row,
  );
}

const wideRows = (rows: readonly sentences.TargetRow[]): string[][] => [
  ['NODE', 'STATE', 'FOR', 'MESSAGE'],
  ...rows.map(({ name, state, age: time, message }) => [name, state, time, message]),
];

/** Returns the table for a narrow terminal: the state comes first, and the message, which may wrap, comes last. */
const narrowRows = (rows: readonly sentences.TargetRow[]): string[][] => [
  ['STATE', 'FOR', 'NODE'],
  ...rows.map(({ name, state, age: time, message }) => [
    state,
    time,
    message === '' ? name : `${name}: ${message}`,
  ]),
];

interface Mark {
  readonly word: string;
  readonly sign: string;
  readonly style?: Style;
}

const DONE: Mark = { word: 'done', sign: '●', style: 'green' };
const MOVING: Mark = { word: 'in progress', sign: '◐', style: 'cyan' };
const FAILED: Mark = { word: 'failed', sign: '✗', style: 'red' };
const SKIPPED: Mark = { word: 'skipped', sign: '◌', style: 'yellow' };
const PENDING: Mark = { word: 'pending', sign: '○' };

function markOf(target: Pick<TargetJson, 'phase'>): Mark {
  if (sentences.isMoving(target)) return MOVING;
  if (target.phase === 'pending') return PENDING;
  if (target.phase === 'skipped') return SKIPPED;
  return target.phase === 'done' ? DONE : FAILED;
}

/** The most marks of targets in a line, so that the line fits into 80 columns. */
const MOST_MARKS = 40;
/** Spaces before and between the title, the counts and the marks of a stage. */
const MARGINS = 6;

/** Returns a line for each stage, with one mark for each target, or with counts if there are many. */
function stageBars(stages: readonly StageJson[], medium: Medium): string[] {
  const found = stages.filter(
    ({ targets, selection }) => targets.length > 0 || selection !== undefined,
  );
  const several = new Set(found.map(({ command }) => command)).size > 1;
  const counts = found.map((stage) => `${countOf(stage, DONE)}/${stage.targets.length}`);
  const widest = Math.max(0, ...counts.map(({ length }) => length));
  const titles = found.map(({ role, command }) =>
    several ? `${role}s of spec.commands[${command}]` : `${role}s`,
  );
  const room = medium.width - MARGINS - widest - Math.max(0, ...titles.map(({ length }) => length));
  return aligned(
    found.map((stage, index) => [
      titles[index] ?? '',
      (counts[index] ?? '').padStart(widest),
      barOf(stage, medium, room),
    ]),
  ).flat();
}

/** Returns the marks of a stage, or counts if the marks do not fit into `room` columns. */
function barOf(stage: StageJson, { paint }: Medium, room: number): string {
  const { selection, targets } = stage;
  if (selection !== undefined) return paint('yellow', `nothing matched ${selection}`);
  if (targets.length <= Math.min(MOST_MARKS, room))
    return targets.map((target) => paint(markOf(target).style, markOf(target).sign)).join('');
  return [MOVING, FAILED, SKIPPED, PENDING]
    .filter((mark) => countOf(stage, mark) > 0)
    .map((mark) => paint(mark.style, `${countOf(stage, mark)} ${mark.word}`))
    .join(', ');
}

function countOf({ targets }: StageJson, mark: Mark): number {
  return targets.filter((target) => markOf(target) === mark).length;
}

/** The parts of a status or of a preview from which notes are made. */
export interface Noted extends Pick<ShownStatus, 'leader' | 'lease' | 'silentSince' | 'orphaned'> {
  readonly plans: readonly Pick<ShownPlan, 'phase' | 'texts'>[];
}

/** A note that concerns all plans, such as `No leader for 5 min: …`. */
export interface Note {
  readonly problem: string;
  /** RFC 3339 time since when the problem exists. */
  readonly since?: string | undefined;
  readonly effect: string;
}

const EFFECTS = {
  held: 'it ignores policies, controls and version rules. The output below shows what Refit would do.',
  late: 'another refit controller takes over in a few seconds, if one runs. If nothing changes, check that the clocks of this machine and of the controllers agree.',
  silent: 'no new node starts until a refit controller runs.',
  orphaned: 'the leader uncordons each node when its upgrade has ended; check that its agent runs.',
};

export function notesOf({ leader, lease, silentSince, orphaned = [], plans }: Noted): Note[] {
  const old = 'the output below may be out of date.';
  if (silentSince !== undefined)
    return [{ problem: 'No answer from the API server', since: silentSince, effect: old }];
  const left = `Still cordoned for a deleted plan: ${listed(orphaned, FEW)}`;
  const notes = orphaned.length === 0 ? [] : [{ problem: left, effect: EFFECTS.orphaned }];
  if (notes.length === 0 && !plans.some((plan) => isOpenPlan(plan) && leaseOf(plan) !== undefined))
    return [];
  const ofPlans = plans.map(leaseOf).find((each) => each !== undefined);
  return [...leaderNotes(leader, ofPlans ?? lease), ...notes];
}

function leaseOf({ texts }: Pick<ShownPlan, 'texts'>): LeaseName | undefined {
  return texts.process.lease;
}

function leaderNotes(leader: LeaderView, lease: LeaseName | undefined): Note[] {
  if (leader.state === 'none') {
    const which = lease === undefined ? 'its lease' : `lease ${lease.namespace}/${lease.name}`;
    const effect = `no refit controller holds ${which}. No new node starts until one runs.`;
    return [{ problem: 'No leader', since: leader.since, effect }];
  }
  if (leader.state === 'unknown') return [];
  const { state, holder, since } = leader;
  if (state === 'held') return otherLeaderNotes(leader);
  return [{ problem: `No renewal by leader ${holder}`, since, effect: EFFECTS[state] }];
}

/** Returns the note about a leader that does not read what the commands of Refit write; no note about other leaders. */
function otherLeaderNotes(leader: LeaderView): Note[] {
  if (leader.state !== 'held' || !isK0sLeader(leader.holder)) return [];
  return [{ problem: "Led by k0s's own leader", since: leader.since, effect: EFFECTS.held }];
}

/** Returns the note of `otherLeaderNotes` as lines, for a command that is about no single plan. */
export function otherLeaderLines(leader: LeaderView, now: number): string[] {
  return linesOf(otherLeaderNotes(leader), now);
}

export function noteLines(view: Noted, now: number): string[] {
  return linesOf(notesOf(view), now);
}

function linesOf(notes: readonly Note[], now: number): string[] {
  return notes.map(
    ({ problem, since, effect }) =>
      `${problem}${since === undefined ? '' : ` for ${age(since, now)}`}: ${effect}`,
  );
}

/** The JSON and text forms of `refit preview` (docs/reference/cli.md), made from the JSON form of `refit status`. */

import { describeBlockingBudget } from '../../drain/budgets.ts';
import { isRoutine } from '../../engine/explain/routine-waits.ts';
import type { PlanPhase } from '../../engine/model/shown-phases.ts';
import type { ReadyReport } from '../../ready/finding.ts';
import { formatDuration } from '../../util/duration.ts';
import { timeWithZone } from '../../util/maintenance-windows.ts';
import { counted, groupedSentences, listed } from '../../util/phrases.ts';
import { sentenceOf, verdictOf } from '../ready/render.ts';
import type { ShownPlan } from '../status/json-form.ts';
import type { LeaderView } from '../status/load.ts';
import { cordonLines, heldLines, pauseLines, toldOnce } from '../status/sentences.ts';
import { checkSection, noteLines, titleOf } from '../status/text.ts';
import type { Batch, Duration, StagePreview } from './batches.ts';
import type { PlanDrainPreview, PolicyRule } from './findings.ts';

/** The preview of one plan. `reason` says why the plan will be refused, does nothing, or will fail soon. */
export interface PlanPreview
  extends Pick<
    ShownPlan,
    | 'dialect'
    | 'texts'
    | 'kind'
    | 'namespace'
    | 'cluster'
    | 'name'
    | 'uid'
    | 'id'
    | 'phase'
    | 'reason'
    | 'timeZone'
    | 'paused'
    | 'waits'
    | 'cordoned'
    | 'decided'
    | 'warnings'
    | 'checks'
    | 'unseen'
  > {
  /** The newest version of Kubernetes that the plan brings; absent if the plan will not start, or if no version can be read. */
  readonly to?: string | undefined;
  /** The phase of the plan in the cluster that has the same name. */
  readonly present?: PlanPhase | undefined;
  /** One sentence: what the user must do before the plan can run; absent if there is nothing to do. */
  readonly first?: string | undefined;
  /** All reasons why the plan will be refused. `reason` may have only the first of them. */
  readonly problems?: readonly string[] | undefined;
  readonly stages: readonly StagePreview[];
  readonly policy?: PolicyRule | undefined;
  /** One sentence about the order of the workers. Absent if the number of pods does not decide the order. */
  readonly order?: string | undefined;
  readonly drains?: PlanDrainPreview | undefined;
  /** One sentence: whether the leader rolls the plan back by itself after failures. */
  readonly rollBack?: string | undefined;
  /** Steps that cannot be undone, one sentence each. */
  readonly noReturn?: readonly string[] | undefined;
  /** The expected duration; absent if no node will start or finish. */
  readonly duration?: Duration | undefined;
}

/** The preview. Its JSON form has no `texts`. */
export interface PreviewView {
  readonly leader: LeaderView;
  readonly plans: readonly PlanPreview[];
  /** Whether the cluster can take the versions of the plans. Absent if nobody asked. */
  readonly ready?: readonly ReadyReport[] | undefined;
}

/**
 * The limits of the text form: the maximum numbers of batches, of names of nodes, of blockers, and of unanswered questions. The JSON form
 * has no such limits.
 */
const MOST_BATCHES = 12;
const MOST_NAMES = 8;
const MOST_BLOCKED = 12;
const MOST_UNKNOWN = 4;

/**
 * Returns the text form. `now` is in milliseconds since the Unix epoch. `readyWords` are the words of `refit ready` that name
 * the files of the plans; undefined if the plans are those of the cluster.
 */
export function renderPreview(view: PreviewView, now: number, readyWords?: string): string {
  const blocks = toldOnce(view.plans).map((plan) => renderPlan(plan, now).join('\n'));
  const notes = noteLines(view, now).map((line) => `${line}\n`);
  const plans =
    blocks.length > 0
      ? blocks.join('\n\n')
      : 'There is no plan to preview: all have ended, or none exists.';
  const ready = (view.ready ?? []).map(
    (report) => `\n${readyLines(report, readyWords).join('\n')}\n`,
  );
  return `${notes.join('')}${plans}\n${ready.join('')}`;
}

function renderPlan(plan: PlanPreview, now: number): string[] {
  const { phase, present, reason, stages, waits, decided = [], warnings = [], unseen = [] } = plan;
  const found = stages.filter((stage) => countOf(stage) > 0 || stage.selection !== undefined);
  const hasTargets = stages.some((stage) => countOf(stage) > 0);
  const hasSeveral = new Set(stages.map(({ command }) => command)).size > 1;
  const problems = problemsOf(plan);
  return [
    `${titleOf(plan)}  ${phase}${plan.paused === undefined ? '' : ', paused'}`,
    ...(present === undefined
      ? []
      : [line('present', `the cluster has a plan with this name: ${present}`)]),
    ...(plan.first === undefined ? [] : [line('first', plan.first)]),
    ...problems.map((problem) => line('problem', problem)),
    ...(plan.policy
      ? [line('policy', `UpgradePolicy ${plan.policy.name} ${plan.policy.rule}`)]
      : []),
    ...(plan.order === undefined ? [] : [line('order', plan.order)]),
    ...found.flatMap((stage) => stageLines(stage, hasSeveral)),
    ...waits.map((wait) => line('waits', waitText(wait))),
    ...pauseLines(plan).map((text) => line('paused', text)),
    ...cordonLines(plan).map((text) => line('cordon', text)),
    ...decided.map((text) => line('decided', text)),
    ...warnings.map((text) => line('warning', text)),
    ...(plan.drains ? drainLines(plan.drains) : []),
    ...(plan.rollBack === undefined ? [] : [line('rollback', plan.rollBack)]),
    ...noReturnLines(plan),
    // A plan that will be refused has no duration.
    ...(plan.duration && problems.length === 0 ? durationLines(plan.duration, plan.timeZone) : []),
    ...checkSection(plan, now).lines.map((text) => line('checks', text)),
    ...unseen.map((what) => line('unknown', what)),
    ...(hasTargets || reason !== undefined
      ? []
      : [line('nothing', 'the plan lists or selects no target: check its selectors and limits')]),
  ];
}

/** Returns the blockers of a report, and how many other findings there are. */
export function readyLines(report: ReadyReport, words = `--to ${report.to}`): string[] {
  return [
    verdictOf(report),
    ...findingLines(report, 'blocker', MOST_BLOCKED),
    ...findingLines(report, 'unknown', MOST_UNKNOWN),
    line('more', `refit ready ${words}`),
  ];
}

function findingLines({ findings }: ReadyReport, state: 'blocker' | 'unknown', most: number) {
  const found = findings.filter((finding) => finding.state === state);
  const rest = found.length - most;
  return [
    ...found.slice(0, most).map((finding) => line(state, sentenceOf(finding))),
    ...(rest > 0 ? [line('', `and ${rest} more`)] : []),
  ];
}

function noReturnLines({ noReturn = [], texts: { advice } }: PlanPreview): string[] {
  const last = advice.backUp === undefined ? '' : `; ${advice.backUp}`;
  return noReturn.map((sentence) => line('final', `${sentence}${last}`));
}

/** Returns the reasons why the plan will be refused, one for each line of output. Nodes with the same reason share a line. */
export function problemsOf({ problems, reason }: PlanPreview): readonly string[] {
  const all = problems ?? (reason === undefined ? [] : [reason]);
  // A sentence about a field begins with the field and a colon. Each field keeps its line.
  const isOfField = (problem: string): boolean => /^\S+:/.test(problem);
  return [
    ...all.filter(isOfField),
    ...groupedSentences(
      all.filter((problem) => !isOfField(problem)),
      MOST_NAMES,
    ),
  ];
}

/**
 * Returns the message of a wait and the event that ends the wait. Omits the event if the target only waits for other
 * targets.
 */
function waitText({ reason, ends }: PlanPreview['waits'][number]): string {
  const text = `${reason.message} (${reason.code})`;
  return ends === undefined || isRoutine({ reason }) ? text : `${text}; ends when ${ends}`;
}

function line(heading: string, text: string): string {
  return `  ${heading.padEnd(8)} ${text}`;
}

/** Returns how many entries the preview of a stage shows; 0 only if the stage has no target. */
function countOf({ done, there, moving, held, batches }: StagePreview): number {
  return done + there.length + moving.length + held.length + batches.length;
}

/** The title of the stage names its command only if the plan has several commands. */
function stageLines(stage: StagePreview, hasSeveral: boolean): string[] {
  const { command, role, version, chosenBy, selection, done, there, moving, held } = stage;
  const title = `  ${role}s${hasSeveral ? ` of spec.commands[${command}]` : ''} to ${version}`;
  if (selection !== undefined) return [`${title}: nothing matches ${selection}`];
  return [
    `${title}, ${paceOf(stage)}${done > 0 ? `, ${done} done` : ''}`,
    ...(there.length > 0
      ? [`    there    ${listed(there, MOST_NAMES)}: at ${version} already, done within a second`]
      : []),
    ...(moving.length > 0 ? [`    now      ${listed(moving, MOST_NAMES)}`] : []),
    ...heldLines(held).map((text) => `    held     ${text}`),
    ...batchLines(stage.batches, chosenBy),
  ];
}

/** Returns a clause about how many targets are upgraded at the same time. */
function paceOf({ maxInFlight, chosenBy }: StagePreview): string {
  const few = `${maxInFlight} at a time`;
  return chosenBy === undefined || maxInFlight === 1
    ? few
    : `as many at a time as ${chosenBy} chooses`;
}

/**
 * Returns one line for each batch. The first batch of each wave of the policy is preceded by a line for the wave. If
 * another controller chooses the targets, nobody knows which of them are upgraded together.
 */
function batchLines(batches: readonly Batch[], chosenBy: string | undefined): string[] {
  const rest = batches.length - MOST_BATCHES;
  return [
    ...batches
      .slice(0, MOST_BATCHES)
      .flatMap(({ wave, needsApproval, nodes }, index) => [
        ...(wave === undefined || wave === batches[index - 1]?.wave
          ? []
          : [
              `    wave ${wave} of the policy${needsApproval === true ? ', which waits for refit approve' : ''}`,
            ]),
        `    ${(chosenBy === undefined ? `batch ${index + 1}` : 'left').padEnd(8)} ${listed(nodes, MOST_NAMES)}`,
      ]),
    ...(rest > 0 ? [`    and ${rest} more ${rest === 1 ? 'batch' : 'batches'}`] : []),
  ];
}

function drainLines(drains: PlanDrainPreview): string[] {
  const { nodes, evictable, deletes = false, blocked, warnings = [], unseen } = drains;
  const rest = blocked.length - MOST_BLOCKED;
  const unwarned = warnings.length - MOST_BLOCKED;
  const how = deletes ? 'deleted, whatever PodDisruptionBudgets say,' : 'evicted';
  const evictions = `${counted(evictable, 'pod')} would be ${how} from ${counted(nodes, 'node')}`;
  return [
    ...(evictable > 0 ? [line('drains', evictions)] : []),
    ...blocked.slice(0, MOST_BLOCKED).map(({ target, budgets, refusal }) => {
      const why = [
        ...budgets.map(describeBlockingBudget),
        ...(refusal === undefined ? [] : [refusal]),
      ];
      return line('blocked', `${target} cannot be drained: ${why.join('; ')}`);
    }),
    ...(rest > 0 ? [line('', `and ${rest} more`)] : []),
    ...warnings.slice(0, MOST_BLOCKED).map((text) => line('warning', text)),
    ...(unwarned > 0 ? [line('', `and ${unwarned} more`)] : []),
    ...(unseen === undefined ? [] : [line('unknown', `whether nodes can be drained: ${unseen}`)]),
  ];
}

function durationLines(duration: Duration, timeZone: string | undefined): string[] {
  const { ms, perTargetMs, basis, samples, inWindows, window, doneAt } = duration;
  const shown = (time: string): string => timeWithZone(Date.parse(time), timeZone);
  const each = `${formatDuration(perTargetMs)} a batch`;
  const why =
    basis === 'measured'
      ? `in the last run, 90 % of the nodes took at most this time, measured on ${counted(samples, 'node')}`
      : 'assumed for a node with nothing to drain; downloads take additional time';
  const takes = line('takes', `about ${formatDuration(ms)} of work: ${each}; ${why}`);
  if (inWindows !== true) return [takes];
  const end =
    doneAt === undefined
      ? 'never done, because no window of the policy is long enough for a batch'
      : `done at about ${shown(doneAt)}, in the windows of the policy`;
  const fits =
    window &&
    `${window.nodes} of ${counted(window.of, 'node')} in the next window, from ${shown(window.from)} (${basis})`;
  return [takes, ...(fits === undefined ? [] : [line('fits', fits)]), line('ends', end)];
}

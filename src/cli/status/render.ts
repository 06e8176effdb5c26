/** Writes the output formats of `refit status`, once or in a watch: text, wide, json, yaml, and lines of changes in a pipe. */

import { isRoutine } from '../../engine/explain/routine-waits.ts';
import type { Wait } from '../../engine/model/decision.ts';
import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import { rfc3339 } from '../../util/clock.ts';
import { writeYaml } from '../../util/yaml.ts';
import { drawOn, mediumOf, type Output } from '../output.ts';
import { wrapped } from '../phrases.ts';
import type { ShownPlan, ShownStatus } from './json-form.ts';
import { percentOf, progressIn, toldOnce, withoutReports } from './sentences.ts';
import { sinceSection } from './since-end.ts';
import { statusJson } from './status-json.ts';
import {
  fullNameOf,
  noteLines,
  notesOf,
  progressOf,
  renderPlan,
  renderSections,
  stateOf,
} from './text.ts';

export type Form = 'text' | 'wide' | 'json' | 'yaml';

type Shape = Pick<Output, 'hasColours' | 'size' | 'advises'>;

/**
 * Returns the output. `now` is in milliseconds since the Unix epoch. Only the text forms contain ages, so json and yaml
 * do not change as time passes.
 */
export function render(view: ShownStatus, form: Form, now: number, shape: Shape): string {
  if (form === 'text' || form === 'wide')
    return `${renderLines(view, form, now, shape).join('\n')}\n`;
  const json = statusJson(view);
  return form === 'json' ? `${JSON.stringify(json, undefined, 2)}\n` : writeYaml(json);
}

function renderLines(
  view: ShownStatus,
  form: 'text' | 'wide',
  now: number,
  shape: Shape,
): string[] {
  const medium = mediumOf(shape);
  const notes = noteLines(view, now).flatMap((line) => wrapped(line, medium.width));
  const painted = notes.map((line) => medium.paint('yellow', line));
  if (view.plans.length === 0) return [...painted, 'There is no plan.'];
  const blocks = toldOnce(view.plans).map((plan) => [
    ...renderPlan(plan, form, now, medium),
    ...renderSections([sinceSection(plan)], medium),
  ]);
  return [...painted, ...blocks.flatMap((block, index) => (index === 0 ? block : ['', ...block]))];
}

export type Show = (view: ShownStatus, now: number) => void;

/**
 * Returns the function that shows each view of a watch. It redraws a terminal, writes lines of changes to a pipe, or writes one JSON or
 * YAML document after the other.
 */
export function watchWriter(output: Output, form: Form): Show {
  if (form === 'json' || form === 'yaml') return writeDocuments(output, form);
  if (!output.isTerminal) return writeChanges(output);
  const draw = drawOn(output);
  return (view, now) => draw(renderLines(view, form, now, output));
}

/**
 * Writes a document each time the view differs from the previous view: one JSON object on a line, or one YAML document.
 */
function writeDocuments(output: Output, form: 'json' | 'yaml'): Show {
  let last = '';
  return (view, now) => {
    const text =
      form === 'json'
        ? `${JSON.stringify(statusJson(view))}\n`
        : `---\n${render(view, form, now, output)}`;
    if (text !== last) output.write(text);
    last = text;
  };
}

function writeChanges(output: Output): Show {
  let before: ShownStatus | undefined;
  return (view, now) => {
    const lines = changesBetween(before, view, now);
    before = view;
    output.write(lines.map((line) => `${line}\n`).join(''));
  };
}

/** Returns a line with the time `now` for each change between two views. Without `before`, it describes the whole view. */
export function changesBetween(
  before: ShownStatus | undefined,
  after: ShownStatus,
  now: number,
): string[] {
  const printed = new Set(before ? linesOf(before) : []);
  const known = new Map(before?.plans.map((plan) => [plan.uid, plan]));
  const left = new Set(after.plans.map(({ uid }) => uid));
  return [
    ...linesOf(after).filter((line) => !printed.has(line)),
    ...[...known.values()]
      .filter(({ uid }) => !left.has(uid))
      .map((plan) => `${subjectOf(plan)} is gone`),
    ...toldOnce(after.plans).flatMap((plan) => changesOf(known.get(plan.uid), plan, now)),
  ].map((line) => `${rfc3339(now)} ${line}`);
}

function linesOf(view: ShownStatus): string[] {
  const none = view.plans.length === 0 ? ['There is no plan.'] : [];
  // The notes have no age in this output, because a new age would count as a change of the view.
  return [...notesOf(view).map(({ problem, effect }) => `${problem}: ${effect}`), ...none];
}

function changesOf(before: ShownPlan | undefined, after: ShownPlan, now: number): string[] {
  const printed = new Set(before ? eventsOf(before) : []);
  const found = eventsOf(after, before === undefined);
  const lines = [
    ...(before ? [] : sumsOf(after)),
    ...found.filter((line) => !printed.has(line)),
    ...(before ? progressSince(before, after, now) : []),
  ];
  return lines.map((line) => `${subjectOf(after)} ${line}`);
}

function subjectOf(plan: ShownPlan): string {
  return plan.texts.advice.subject ?? fullNameOf(plan);
}

/**
 * Returns one line for each role: how many targets of the role are done. A role with several stages has one line, too.
 */
function sumsOf({ stages }: ShownPlan): string[] {
  return [...Map.groupBy(stages, ({ role }) => role)].flatMap(([role, own]) => {
    const { done, total } = progressIn(own.flatMap((stage) => stage.targets));
    return total === 0 ? [] : [`has ${done} of ${total} ${role}s done`];
  });
}

/** Returns the progress since the last view. Leaves out parts that have not changed, such as an estimate. */
function progressSince(before: ShownPlan, after: ShownPlan, now: number): string[] {
  if (!isOpenPlan(after) || percentOf(before) >= percentOf(after)) return [];
  const known = new Set(progressOf(before, now));
  return [
    progressOf(after, now)
      .filter((part) => !known.has(part))
      .join(', '),
  ];
}

/** Returns the lines about a plan. In the first view, targets that are done have no lines, because the view shows their number. */
function eventsOf(plan: ShownPlan, isFirst = false): string[] {
  const { reason, stages, waits, decided = [], warnings = [] } = plan;
  const targets = stages.flatMap(({ role, targets }) =>
    targets.map((target) => ({ ...target, role })),
  );
  return [
    ...targets
      .filter(({ phase }) => phase !== 'pending' && phase !== 'intended')
      .filter(({ phase }) => !isFirst || phase !== 'done')
      .map(({ role, name, phase, step = phase, failure }) => {
        const state = phase === 'working' ? step : phase;
        return `${role} ${name} ${state}${failure ? `: ${failure}` : ''}`;
      }),
    ...waits.filter((wait) => !isRoutine(wait)).map((wait) => waitText(wait, plan)),
    ...decided.map((sentence) => `decided: ${sentence}`),
    ...warnings.map((warning) => `warns: ${warning}`),
    `${stateOf(plan)}${reason ? `: ${withoutReports(reason, plan)}` : ''}`,
  ];
}

function waitText({ target, reason: { code, message } }: Wait, plan: ShownPlan): string {
  const subject = target ? `${target} ` : '';
  return `${subject}waits (${code}): ${withoutReports(message, plan)}`;
}

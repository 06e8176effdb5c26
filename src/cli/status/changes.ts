/** Owns `refit status -w` where nobody looks at a terminal: one plain line for each change, never a line twice. */
import { rfc3339 } from '../../util/clock.ts';
import { notesOf } from './notes.ts';
import { stateOf } from './text.ts';
import type { PlanView, StageView, StatusView, TargetView } from './view.ts';

/** What merely moves, or lacks only a slot or its turn, is told by the targets' own lines. */
const EVERYDAY: ReadonlySet<string> = new Set(['InFlight', 'Intended', 'Signalled', 'NoFreeSlot', 'EarlierStage']);

/** The lines that `after` adds to what was told of `before`. */
export function changesBetween(before: StatusView | undefined, after: StatusView, now: number): string[] {
  const told = new Set(before ? linesOf(before) : []);
  const known = new Map(before?.plans.map((plan) => [plan.uid, plan]));
  const left = new Set(after.plans.map(({ uid }) => uid));
  return [
    ...linesOf(after).filter((line) => !told.has(line)),
    ...[...known.values()].filter(({ uid }) => !left.has(uid)).map((plan) => `${titleOf(plan)} is gone`),
    ...after.plans.flatMap((plan) => changesOf(known.get(plan.uid), plan)),
  ].map((line) => `${rfc3339(now)} ${line}`);
}

/** What concerns no single plan. */
function linesOf(view: StatusView): string[] {
  const none = view.plans.length === 0 ? ['There is no plan.'] : [];
  return [...notesOf(view).map(({ text }) => text), ...none];
}

function changesOf(before: PlanView | undefined, after: PlanView): string[] {
  const told = new Set(before ? eventsOf(before) : []);
  const found = before ? eventsOf(after) : eventsOf(withoutDone(after));
  const sums = before ? [] : after.stages.filter(({ targets }) => targets.length > 0).map(sumOf);
  return [...sums, ...found.filter((line) => !told.has(line))].map((line) => `${titleOf(after)} ${line}`);
}

/** Whoever begins to look is told the sum of what is done, and not each of it. */
function withoutDone(plan: PlanView): PlanView {
  const open = ({ phase }: TargetView): boolean => phase !== 'done';
  return { ...plan, stages: plan.stages.map((stage) => ({ ...stage, targets: stage.targets.filter(open) })) };
}

function sumOf({ role, targets }: StageView): string {
  const done = targets.filter(({ phase }) => phase === 'done').length;
  return `has ${done} of ${targets.length} ${role}s done`;
}

function eventsOf(plan: PlanView): string[] {
  const { reason, stages, waits } = plan;
  const targets = stages.flatMap(({ role, targets }) => targets.map((target) => ({ ...target, role })));
  return [
    ...targets
      .filter((target) => target.phase !== 'pending' && target.phase !== 'intended')
      .map(
        ({ role, name, step, phase, failure }) =>
          `${role} ${name} ${wordOf(phase, step)}${failure ? `: ${failure}` : ''}`,
      ),
    ...waits
      .filter(({ reason: { code } }) => !EVERYDAY.has(code))
      .map(
        ({ target, gate, reason: { message } }) =>
          `${target === undefined ? '' : `${target} `}waits (${gate}): ${message}`,
      ),
    `${stateOf(plan)}${reason ? `: ${reason}` : ''}`,
  ];
}

function wordOf(phase: TargetView['phase'], step: string | undefined): string {
  return phase === 'working' ? (step ?? phase) : phase;
}

function titleOf({ kind, name }: PlanView): string {
  return `${kind} ${name}`;
}

/** The lines of `refit status -w` in a pipe: one for each change, never a line twice. */
import { rfc3339 } from '../../util/clock.ts';
import { type Note, notesOf } from './notes.ts';
import { isRoutine } from './sentences.ts';
import { stateOf } from './text.ts';
import type { PlanView, StageView, StatusView, TargetView } from './view.ts';

/** The lines to print when `after` follows `before`. */
export function changesBetween(before: StatusView | undefined, after: StatusView, now: number): string[] {
  const printed = new Set(before ? linesOf(before) : []);
  const known = new Map(before?.plans.map((plan) => [plan.uid, plan]));
  const left = new Set(after.plans.map(({ uid }) => uid));
  return [
    ...linesOf(after).filter((line) => !printed.has(line)),
    ...[...known.values()].filter(({ uid }) => !left.has(uid)).map((plan) => `${titleOf(plan)} is gone`),
    ...after.plans.flatMap((plan) => changesOf(known.get(plan.uid), plan)),
  ].map((line) => `${rfc3339(now)} ${line}`);
}

/** Lines about no single plan. */
function linesOf(view: StatusView): string[] {
  const none = view.plans.length === 0 ? ['There is no plan.'] : [];
  return [...notesOf(view).map(lineOf), ...none];
}

/** Without an age, which would differ each time. */
function lineOf({ problem, effect }: Note): string {
  return `${problem}: ${effect}`;
}

function changesOf(before: PlanView | undefined, after: PlanView): string[] {
  const printed = new Set(before ? eventsOf(before) : []);
  const found = before ? eventsOf(after) : eventsOf(withoutDone(after));
  const sums = before ? [] : after.stages.filter(({ targets }) => targets.length > 0).map(sumOf);
  return [...sums, ...found.filter((line) => !printed.has(line))].map((line) => `${titleOf(after)} ${line}`);
}

/** The first view gets sums instead of a line for each target that is done. */
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
      .filter(({ phase }) => phase !== 'pending' && phase !== 'intended')
      .map(({ role, name, phase, step = phase, failure }) => {
        const state = phase === 'working' ? step : phase;
        return `${role} ${name} ${state}${failure ? `: ${failure}` : ''}`;
      }),
    ...waits
      .filter((wait) => !isRoutine(wait))
      .map(
        ({ target, gate, reason: { message } }) =>
          `${target === undefined ? '' : `${target} `}waits (${gate}): ${message}`,
      ),
    `${stateOf(plan)}${reason ? `: ${reason}` : ''}`,
  ];
}

function titleOf({ kind, name }: PlanView): string {
  return `${kind} ${name}`;
}

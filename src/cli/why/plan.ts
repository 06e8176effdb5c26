/** Owns the paragraph about a plan: what it waits for, since when and what ends that, or why it failed and what to do. */
import type { ReasonCode } from '../../engine/reasons.ts';
import { listed } from '../phrases.ts';
import { notesOf } from '../status/notes.ts';
import { failureLines, movingLines, waitLines } from '../status/sentences.ts';
import { timesOf } from '../status/text.ts';
import type { PlanView, StatusView } from '../status/view.ts';
import { ENDINGS, operatorOf } from './endings.ts';

/** Names that are told of those that start next. */
const NEXT_NAMES = 5;

/** Sentences, in order. */
export function explainPlan(status: StatusView, plan: PlanView, now: number): string[] {
  const targets = plan.stages.flatMap((stage) => stage.targets);
  const done = targets.filter(({ phase }) => phase === 'done').length;
  const how = `${titleOf(plan)} is ${plan.phase}${timesOf(plan, now)}: ${done} of ${targets.length} targets are done.`;
  if (plan.phase === 'done') return [how, ...(plan.reason === undefined ? [] : [`But: ${plan.reason}.`])];
  const failures = failureLines(plan);
  const failed = failures.length > 0 ? [`Why: ${failures.join('; ')}.`, adviceOf(plan)] : [];
  return isOpen(plan) ? [how, ...failed, ...progressOf(plan, now), ...operationOf(status, plan)] : [how, ...failed];
}

export function titleOf({ kind, name, id }: PlanView): string {
  return `${kind} ${name}${id === '' ? '' : ` (${id})`}`;
}

export function isOpen({ phase }: PlanView): boolean {
  return phase === 'new' || phase === 'running';
}

export function adviceOf({ dialect }: PlanView): string {
  return `What to do: ${operatorOf(dialect).mend}.`;
}

/** What is under way, what waits, and what ends each of that. */
export function progressOf(plan: PlanView, now: number): string[] {
  const [moving, waiting] = [movingLines(plan, now), waitLines(plan, now)];
  const isRefused = plan.phase === 'new' && plan.reason !== undefined;
  const starts = plan.next.length > 0 ? [`Next: ${listed(plan.next, NEXT_NAMES)}.`] : [];
  return [
    ...(moving.length > 0 ? [`Under way: ${moving.join('; ')}.`] : []),
    ...(waiting.length > 0 ? [`Waiting: ${waiting.join('; ')}.`] : []),
    ...(isRefused ? [] : [...endingsOf(plan), ...starts]),
  ];
}

function endingsOf({ waits, dialect }: PlanView): string[] {
  const codes = new Set(waits.map(({ reason }) => reason.code));
  const ends = [...codes].flatMap((code) => ENDINGS[code] ?? []);
  if (ends.length === 0) return [];
  const late = IN_FLIGHT.some((code) => codes.has(code))
    ? ` A node under way has failed when ${operatorOf(dialect).limit}.`
    : '';
  return [`This ends when ${ends.join('; when ')}.${late}`];
}

const IN_FLIGHT: readonly ReasonCode[] = ['InFlight', 'Signalled'];

/** Who leads is known of our own controller only. */
export function operationOf(status: StatusView, plan: PlanView): string[] {
  const notes = notesOf({ ...status, plans: [plan] }).map(({ text }) => `${text}.`);
  if (notes.length > 0 || plan.dialect === 'autopilot') return notes;
  return [`It is for ${operatorOf(plan.dialect).name} to carry out; whether that runs cannot be seen here.`];
}

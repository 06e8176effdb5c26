/** Owns the paragraph about a plan: what it waits for, since when and what ends that, or why it failed and what to do. */
import type { Wait } from '../../engine/model/decided.ts';
import { mendingOf, operatorOf } from '../operators.ts';
import { age, listed } from '../phrases.ts';
import { noteLines } from '../status/notes.ts';
import { failureLines, movingLines, waitLines } from '../status/sentences.ts';
import { isMoving } from '../status/stage-lines.ts';
import { stateOf, timesOf } from '../status/text.ts';
import type { PlanView, StatusView } from '../status/view.ts';
import { endingOf } from './endings.ts';

/** Names that are told of those that start next. */
const NEXT_NAMES = 5;

/** Sentences, in order. */
export function explainPlan(status: StatusView, plan: PlanView, now: number): string[] {
  const targets = plan.stages.flatMap((stage) => stage.targets);
  const done = targets.filter(({ phase }) => phase === 'done').length;
  const how = `${titleOf(plan)} ${stateOf(plan)}${timesOf(plan, now)}: ${done} of ${targets.length} targets are done.`;
  if (plan.phase === 'done') return [how, ...(plan.reason === undefined ? [] : [`But: ${plan.reason}.`])];
  const failures = failureLines(plan);
  const failed = failures.length > 0 ? [`Why: ${failures.join('; ')}.`, adviceOf(plan)] : [];
  return isOpen(plan)
    ? [how, ...failed, ...progressOf(plan, now), ...operationOf(status, plan, now), ...waysToStop(plan)]
    : [how, ...failed];
}

export function titleOf({ kind, name, id }: PlanView): string {
  return `${kind} ${name}${id === '' ? '' : ` (${id})`}`;
}

/** Orders that are left to give. */
function waysToStop({ paused, abort }: PlanView): string[] {
  if (abort !== undefined) return [];
  return [paused === 'order' ? '`refit abort` ends it.' : '`refit pause` holds it, `refit abort` ends it.'];
}

export function isOpen({ phase }: PlanView): boolean {
  return phase === 'new' || phase === 'running';
}

export function adviceOf(plan: PlanView): string {
  return `What to do: ${mendingOf(plan)}.`;
}

/** What is under way, what waits, and what ends each of that. */
export function progressOf(plan: PlanView, now: number): string[] {
  const [moving, waiting] = [movingLines(plan, now), waitLines(plan, now)];
  const isRefused = plan.phase === 'new' && plan.reason !== undefined;
  const starts = plan.next.length > 0 ? [`Next: ${listed(plan.next, NEXT_NAMES)}.`] : [];
  return [
    ...(moving.length > 0 ? [`Under way: ${moving.join('; ')}.`] : []),
    ...(waiting.length > 0 ? [`Waiting: ${waiting.join('; ')}.`] : []),
    ...(isRefused ? [] : [...endingsOf(plan, now), ...ownDrains(plan), ...starts]),
    ...(plan.unseen ?? []).map((what) => `It cannot be seen ${what}.`),
  ];
}

/** What holds up a node that drains itself, only its agent knows. */
function ownDrains({ stages }: PlanView): string[] {
  const own = stages
    .flatMap(({ targets }) => targets)
    .filter(({ drains, phase }) => drains === 'node' && phase === 'working');
  const [first] = own;
  if (!first) return [];
  const who = own.length === 1 ? `${first.name} lets` : `${own.length} nodes let`;
  return [
    `${who} no leader cordon and drain: the agent does it, as k0s before 1.35, and its log tells what it waits for.`,
  ];
}

function endingsOf(plan: PlanView, now: number): string[] {
  const ends = new Set(plan.waits.flatMap((wait) => endingOf(plan, wait) ?? []));
  if (ends.size === 0) return [];
  return [`This ends when ${[...ends].join('; when ')}.`, ...latenessOf(plan, now)];
}

/** What becomes of those under way that stay as they are: of the one whose time is over first. */
function latenessOf({ waits, stages, dialect }: PlanView, now: number): string[] {
  const moving = new Set(stages.flatMap(({ targets }) => targets.filter(isMoving).map(({ name }) => name)));
  const waiting = waits.filter(
    ({ target, reason }) => target !== undefined && moving.has(target) && reason.code !== 'Intended',
  );
  if (waiting.length === 0) return [];
  const [first] = waiting.filter(hasEnd).toSorted((a, b) => Date.parse(a.until) - Date.parse(b.until));
  if (!first) return [`A node under way has failed when ${operatorOf(dialect).limit}.`];
  const { target, until } = first;
  const overdue = Date.parse(until) <= now;
  return overdue
    ? [
        `The time of ${target} was over at ${until} (${age(until, now)} ago): it has failed once the leader has seen it stand still for that long.`,
      ]
    : [`Where ${target} stays as it is, it has failed at ${until}.`];
}

function hasEnd(wait: Wait): wait is Wait & { readonly until: string } {
  return wait.until !== undefined;
}

/** Who leads is known of our own controller only. */
export function operationOf(status: StatusView, plan: PlanView, now: number): string[] {
  const notes = noteLines({ ...status, plans: [plan] }, now).map((line) => `${line}.`);
  if (notes.length > 0 || plan.dialect === 'autopilot') return notes;
  return [`It is for ${operatorOf(plan.dialect).name} to carry out; whether that runs cannot be seen here.`];
}

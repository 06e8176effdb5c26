/** Owns `refit status` as text for people: one screen a plan, whatever its size, that says what runs, waits and comes next. */
import { mendingOf } from '../operators.ts';
import { age, listed, wrapped } from '../phrases.ts';
import type { Medium, Style } from './medium.ts';
import { failureLines, movingLines, waitLines } from './sentences.ts';
import { stageLines } from './stage-lines.ts';
import type { PlanView } from './view.ts';

const COLOURS: Readonly<Record<PlanView['phase'], Style>> = {
  new: 'cyan',
  running: 'cyan',
  done: 'green',
  failed: 'red',
  incomplete: 'red',
  invalid: 'red',
};
/** Names that are told of those that come next. */
const NEXT_NAMES = 5;
/** Columns of a heading with the blanks around it. */
const MARGIN = 10;

export function renderPlan(view: PlanView, now: number, medium: Medium): string[] {
  const { paint, width } = medium;
  const section = (heading: string, sentences: readonly string[], style?: Style): string[] =>
    sentences
      .flatMap((sentence) => wrapped(sentence, width - MARGIN))
      .map((line, index) => {
        const text = style === undefined ? line : paint(style, line);
        return `  ${(index === 0 ? heading : '').padEnd(MARGIN - 3)} ${text}`;
      });
  return [
    titleOf(view, now, medium),
    ...stageLines(view.stages, medium).map((line) => `  ${line}`),
    ...section('why', failureLines(view), 'red'),
    ...section('now', movingLines(view, now)),
    ...section('waits', waitLines(view, now), 'yellow'),
    ...section('next', nextLines(view)),
  ];
}

function titleOf(view: PlanView, now: number, { paint }: Medium): string {
  const { kind, name, id, phase, stages } = view;
  const versions = [...new Set(stages.map(({ version }) => version))].filter((version) => version !== '');
  return [
    paint('bold', `${kind} ${name}${id === '' ? '' : ` (${id})`}`),
    `${paint(COLOURS[phase], phase)}${timesOf(view, now)}`,
    ...(versions.length > 0 ? [`to ${versions.join(', then ')}`] : []),
  ].join('  ');
}

/** What a sentence says of a plan: `is running`. */
export function stateOf({ phase }: PlanView): string {
  return `${phase === 'failed' ? 'has' : 'is'} ${phase}`;
}

/** What follows a plan's phase. */
export function timesOf({ phase, created, ended, paused }: PlanView, now: number): string {
  if (phase === 'new' || phase === 'running')
    return ` for ${age(created, now)}${paused === undefined ? '' : ', paused'}`;
  return ended === undefined ? '' : ` after ${age(created, Date.parse(ended))}, ${age(ended, now)} ago`;
}

function nextLines(view: PlanView): string[] {
  const { phase, reason, next } = view;
  if (phase === 'failed' || phase === 'incomplete' || phase === 'invalid') {
    return [`nothing: this plan is over; ${mendingOf(view)}`];
  }
  if (phase === 'new' && reason !== undefined) return ['nothing: as it stands, this plan will be refused'];
  return next.length > 0 ? [listed(next, NEXT_NAMES)] : [];
}

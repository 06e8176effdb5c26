/** Owns the lines of stages: how far each one is, as one mark a target, or as counts where they are many. */
import type { TargetPhase } from '../../engine/model/decided.ts';
import { aligned } from '../table.ts';
import type { Medium, Style } from './medium.ts';
import type { StageView } from './view.ts';

interface Mark {
  readonly word: string;
  readonly sign: string;
  readonly style?: Style;
}

const DONE: Mark = { word: 'done', sign: '●', style: 'green' };
const MOVING: Mark = { word: 'moving', sign: '◐', style: 'cyan' };
const FAILED: Mark = { word: 'failed', sign: '✗', style: 'red' };
const PENDING: Mark = { word: 'pending', sign: '○' };

const MARKS: Readonly<Record<TargetPhase, Mark>> = {
  pending: PENDING,
  intended: MOVING,
  signalled: MOVING,
  working: MOVING,
  verifying: MOVING,
  done: DONE,
  failed: FAILED,
  missing: FAILED,
  unsupported: FAILED,
};

/** More than this do not fit beside the names on 80 columns, and nobody counts them. */
const MOST_MARKS = 40;

export function isMoving({ phase }: { readonly phase: TargetPhase }): boolean {
  return MARKS[phase] === MOVING;
}

export function stageLines(stages: readonly StageView[], medium: Medium): string[] {
  const found = stages.filter(({ targets, selection }) => targets.length > 0 || selection !== undefined);
  const several = new Set(found.map(({ command }) => command)).size > 1;
  const counts = found.map((stage) => `${countOf(stage, DONE)}/${stage.targets.length}`);
  const widest = Math.max(0, ...counts.map(({ length }) => length));
  return aligned(
    found.map((stage, index) => [
      several ? `${stage.role}s of command ${stage.command}` : `${stage.role}s`,
      (counts[index] ?? '').padStart(widest),
      progressOf(stage, medium),
    ]),
  );
}

function progressOf(stage: StageView, medium: Medium): string {
  if (stage.selection !== undefined) return medium.paint('yellow', `nothing matched ${stage.selection}`);
  return stage.targets.length > MOST_MARKS ? inCounts(stage, medium) : inMarks(stage, medium);
}

function inMarks({ targets }: StageView, { paint }: Medium): string {
  return targets
    .map(({ phase }) => MARKS[phase])
    .map(({ sign, style }) => (style === undefined ? sign : paint(style, sign)))
    .join('');
}

/** How many are done stands before it already. */
function inCounts(stage: StageView, { paint }: Medium): string {
  return [MOVING, FAILED, PENDING]
    .map((mark) => ({ ...mark, count: countOf(stage, mark) }))
    .filter(({ count }) => count > 0)
    .map(({ count, word, style }) => (style === undefined ? `${count} ${word}` : paint(style, `${count} ${word}`)))
    .join(', ');
}

function countOf({ targets }: StageView, mark: Mark): number {
  return targets.filter(({ phase }) => MARKS[phase] === mark).length;
}

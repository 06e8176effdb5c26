/** Draws an ended plan: one bar for each node on a common time axis, with steps as shades and waits as dots. */

import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { StepShade } from '../contract/session-dialect.ts';
import type { Medium } from '../output.ts';
import { wrapped } from '../phrases.ts';
import type { ShownPlan, TargetJson } from './json-form.ts';
import { isMoving, targetsOf } from './sentences.ts';

/** The maximum number of columns of the picture. A wider picture is not easier to read. */
const MOST_COLUMNS = 78;
const LEAST_BAR = 16;
/**
 * The minimum time in milliseconds from the first to the last segment. A shorter plan is not drawn, because times are
 * recorded in seconds.
 */
const LEAST_MS = 1000;
/** The maximum number of rows of the picture. More rows would not fit on a screen. */
const MOST_ROWS = 30;

interface Shade {
  readonly shade: string;
  readonly word: string;
}

const SHADES: Readonly<Record<StepShade, Shade>> = {
  download: { shade: '░', word: 'download' },
  drain: { shade: '▒', word: 'drain' },
  apply: { shade: '▓', word: 'apply' },
  restart: { shade: '█', word: 'restart' },
  rollBack: { shade: '▚', word: 'roll back' },
  uncordon: { shade: '▞', word: 'uncordon' },
  verify: { shade: '◇', word: 'verify' },
};
/** The shade for agents that do not report their steps, and for steps that this version does not know. */
const AT_WORK: Shade = { shade: '■', word: 'at work' };
const WAITING: Shade = { shade: '·', word: 'wait' };
/** All shades, in the order of the legend. */
const LEGEND: readonly Shade[] = [...Object.values(SHADES), AT_WORK, WAITING];
const MARKS: Partial<Record<TargetJson['phase'], string>> = { done: '●', failed: '✗' };

export interface Segment extends Shade {
  /** The start of the segment in milliseconds since the Unix epoch. */
  readonly from: number;
  /** The end of the segment in milliseconds since the Unix epoch. */
  readonly to: number;
}

interface Row {
  readonly target: TargetJson;
  readonly segments: readonly Segment[];
}

/**
 * Returns the lines of the picture. Returns no lines for a plan that has not ended, that upgraded no node, or that has
 * too many nodes for a screen.
 */
export function picture(plan: ShownPlan, { width, paint }: Medium): string[] {
  const rows = targetsOf(plan).flatMap((target) => rowOf(target, plan));
  if (rows.length === 0 || rows.length > MOST_ROWS || isOpenPlan(plan)) return [];
  const from = Math.min(...rows.flatMap(({ segments }) => segments.map((each) => each.from)));
  const to = Math.max(...rows.flatMap(({ segments }) => segments.map((each) => each.to)));
  const label = Math.max(...rows.map(({ target }) => target.name.length)) + 2;
  const times = rows.map(({ segments }) => formatDuration(lengthOf(segments)));
  const room = Math.min(MOST_COLUMNS, width - 2);
  const columns = room - label - 4 - Math.max(...times.map(({ length }) => length));
  if (columns < LEAST_BAR || to - from < LEAST_MS) return [];
  const end = ` ${formatDuration(to - from)}`;
  return [
    `${' '.repeat(label)} 0 s ${'─'.repeat(Math.max(0, columns - 4 - end.length))}${end}`,
    ...rows.map(({ target, segments }, index) => {
      const bar = barOf(segments, from, (to - from) / columns, columns).padEnd(columns);
      const line = `${MARKS[target.phase] ?? '◐'} ${target.name.padEnd(label - 2)} ${bar}  ${times[index]}`;
      return target.phase === 'failed' ? paint('red', line) : line;
    }),
    ...wrapped(legendOf(rows), room - label - 1).map(
      (line) => `${' '.repeat(label)} ${line.trimStart()}`,
    ),
  ];
}

/**
 * Returns the steps and waits of a target, in order. A step in progress ends at `now`. Returns an empty list if `picture`
 * draws no bar for the target.
 */
export function stepsOf(target: TargetJson, plan: ShownPlan, now: number): readonly Segment[] {
  const shown = isMoving(target) ? { ...target, since: rfc3339(now) } : target;
  return rowOf(shown, plan)[0]?.segments ?? [];
}

/**
 * Returns the row of a target with its segments. Returns an empty list if the target never began, if its node has a
 * later signal, or if the end of the target is unknown.
 */
function rowOf(target: TargetJson, { texts }: ShownPlan): Row[] {
  const shadeOf = (step: string): Shade => {
    const found = texts.steps.get(step);
    return found === undefined ? AT_WORK : SHADES[found];
  };
  const began = Date.parse(target.began ?? '');
  const ended = Date.parse(target.since);
  if (Number.isNaN(began) || Number.isNaN(ended)) return [];
  let at = began;
  const steps = Object.entries(target.spent ?? {}).map(([step, ms]) => {
    const from = at;
    at += ms;
    return { ...shadeOf(step), from, to: at };
  });
  // k0s's own leader records only the time at which it signalled a node. The end of the target is then unknown.
  if (steps.length === 0 && ended <= began) return [];
  // The time after the last finished step belongs to the step in progress. If no such step is known, the node waited for something else.
  const unnamed = steps.length === 0 && hasAnswered(target) ? AT_WORK : WAITING;
  const rest = target.step === undefined ? unnamed : shadeOf(target.step);
  // The end is recorded in seconds and the steps in milliseconds, so a rest of less than a second is no wait.
  const isRest = ended - at >= LEAST_MS || (ended > at && target.step !== undefined);
  const last = isRest || steps.length === 0 ? [{ ...rest, from: at, to: Math.max(at, ended) }] : [];
  return [{ target, segments: [...steps, ...last] }];
}

/** Returns false for a target whose agent has not answered its signal yet, or never did before the deadline. */
function hasAnswered({ phase, step, failureReason }: TargetJson): boolean {
  if (phase === 'signalled' || phase === 'intended') return false;
  return step !== undefined || failureReason !== 'DeadlineExceeded';
}

/** Returns the milliseconds from the start of the first segment to the end of the last. */
function lengthOf(segments: Row['segments']): number {
  return (segments.at(-1)?.to ?? 0) - (segments[0]?.from ?? 0);
}

/** Draws one bar. Each column shows the step that took most of its time. A bar has at least one column. */
function barOf(
  segments: Row['segments'],
  from: number,
  perColumn: number,
  columns: number,
): string {
  const shades = Array.from({ length: columns }, (_, column) => {
    const start = from + column * perColumn;
    const parts = segments.map(({ shade, ...each }) => ({
      shade,
      ms: Math.min(each.to, start + perColumn) - Math.max(each.from, start),
    }));
    const [most] = parts.filter(({ ms }) => ms > 0).toSorted((a, b) => b.ms - a.ms);
    return most?.shade ?? ' ';
  });
  if (shades.some((shade) => shade !== ' ')) return shades.join('');
  const first = Math.min(columns - 1, Math.floor(((segments[0]?.from ?? from) - from) / perColumn));
  return `${' '.repeat(first)}${segments[0]?.shade ?? ''}`;
}

function legendOf(rows: readonly Row[]): string {
  const used = new Set(rows.flatMap(({ segments }) => segments.map(({ shade }) => shade)));
  return LEGEND.filter(({ shade }) => used.has(shade))
    .map(({ shade, word }) => `${shade}=${word}`)
    .join(' ');
}

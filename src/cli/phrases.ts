/** Formats the parts that several outputs have in common: ages, wrapped sentences and tables. */
import { formatDuration } from '../util/duration.ts';
import type { Medium, Style } from './output.ts';

/**
 * Returns how long ago `since` (RFC 3339) was, in whole seconds. Returns `0 s` if `since` is in the
 * future or not a time, because nodes write some of these values.
 */
export function age(since: string, now: number): string {
  const seconds = Math.floor((now - Date.parse(since)) / 1000);
  return seconds > 0 ? formatDuration(seconds * 1000) : '0 s';
}

/** Returns the text as lines of at most `width` characters, broken at spaces. Every line but the first is indented. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  // A line must not break between a number and its unit.
  for (const word of text.split(/ (?!(?:ms|s|min|h)\b)/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = `  ${word}`;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** A part of a line. A line is never broken inside of a part. `gap` is written before the part, unless the part begins a line. */
export interface LinePart {
  readonly text: string;
  readonly style?: Style;
  readonly gap: string;
}

/**
 * Joins the parts to lines of at most `width` characters. If a part is longer than `width`, its line is longer as well.
 * Every line except the first is indented.
 */
export function partLines(
  parts: readonly LinePart[],
  { paint, width }: Pick<Medium, 'paint' | 'width'>,
  indent = 2,
): string[] {
  const lines = [''];
  let used = 0;
  for (const { text, style, gap } of parts) {
    const isNext = used > 0 && used + gap.length + text.length > width;
    if (isNext) lines.push('');
    used = isNext ? text.length + indent : used + gap.length + text.length;
    lines[lines.length - 1] += `${isNext ? ' '.repeat(indent) : gap}${paint(style, text)}`;
  }
  return lines;
}

/**
 * The minimum width of the last column of a table, in characters. If fewer characters are left, each row is written as
 * several lines.
 */
const LEAST_WIDTH = 24;

export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width?: number,
): string[] {
  const [, ...columns] = header.toReversed();
  const least =
    columns.length * 2 +
    columns.reduce((sum, _, index) => sum + widest([header, ...rows], index), 0);
  return width !== undefined && least > width
    ? rows.flatMap((row) => record(header, row, width))
    : aligned([header, ...rows], width).flat();
}

/** Returns the length of the longest cell of a column. */
function widest(rows: readonly (readonly string[])[], column: number): number {
  return Math.max(...rows.map((row) => row[column]?.length ?? 0));
}

/** Writes a row of a table that is wider than the terminal: one line for each cell that is not empty. */
function record(header: readonly string[], row: readonly string[], width: number): string[] {
  const margin = Math.max(...header.map(({ length }) => length)) + 2;
  return header.flatMap((title, index) => {
    const cell = row[index] ?? '';
    return cell === '' ? [] : wrapped(`${title.padEnd(margin)}${cell}`, width);
  });
}

/** Breaks each line of a text as `wrapped` does. The new lines have the indent of the line that was broken. */
export function wrappedLines(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const indent = ' '.repeat(line.length - line.trimStart().length);
      return wrapped(line.trimStart(), width - indent.length).map((part) => `${indent}${part}`);
    })
    .join('\n');
}

/**
 * Returns for each row its lines, with aligned columns. All rows must have the same number of cells; only the last cell may have colours.
 */
export function aligned(
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[][] {
  const columns = (rows[0] ?? []).slice(0, -1);
  const widths = columns.map((_cell, column) => widest(rows, column));
  const margin = widths.reduce((sum, each) => sum + each + 2, 0);
  return rows.map((row) => {
    const start = row.slice(0, -1).map((cell, column) => cell.padEnd((widths[column] ?? 0) + 2));
    const last = row.at(-1) ?? '';
    const room = width - margin;
    if (last !== '' && room < LEAST_WIDTH && last.length > room)
      return [
        start.join('').trimEnd(),
        ...wrapped(last, width - 4).map((line) => `    ${line.trimStart()}`),
      ];
    return wrapped(last, room).map((line, index) =>
      `${index === 0 ? start.join('') : ' '.repeat(margin)}${line}`.trimEnd(),
    );
  });
}

/** What outputs share: ages, short lists, sentences that fit a width, tables. */
import { formatDuration } from '../util/duration.ts';

/** How long ago `since` (RFC 3339) was, in whole seconds; `0 s` if clocks disagree, or it is no time: nodes write some. */
export function age(since: string, now: number): string {
  const seconds = Math.floor((now - Date.parse(since)) / 1000);
  return seconds > 0 ? formatDuration(seconds * 1000) : '0 s';
}

/** Broken at spaces into lines of at most `width` characters; every line but the first is indented. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  // Not between a number and its unit.
  for (const word of text.split(/ (?!(?:ms|s|min|h)\b)/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = `  ${word}`;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Below this the last column would be unreadable: its text goes on lines of its own. */
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

/** Of a column. */
function widest(rows: readonly (readonly string[])[], column: number): number {
  return Math.max(...rows.map((row) => row[column]?.length ?? 0));
}

/** A row whose table is wider than the terminal: a line for each cell that is not empty. */
function record(header: readonly string[], row: readonly string[], width: number): string[] {
  const margin = Math.max(...header.map(({ length }) => length)) + 2;
  return header.flatMap((title, index) => {
    const cell = row[index] ?? '';
    return cell === '' ? [] : wrapped(`${title.padEnd(margin)}${cell}`, width);
  });
}

/** A text of several lines, each broken as by `wrapped`, with its own indent. */
export function wrappedLines(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const indent = ' '.repeat(line.length - line.trimStart().length);
      return wrapped(line.trimStart(), width - indent.length).map((part) => `${indent}${part}`);
    })
    .join('\n');
}

/** The lines of each row. All rows have the same length; only the last cell may hold colours. */
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

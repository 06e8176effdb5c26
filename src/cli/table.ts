/** Plain tables: columns as wide as their widest cell, two spaces apart; the last column wraps. */
import { wrapped } from './phrases.ts';

/** Below this the last column would be unreadable: its text goes on lines of its own. */
const LEAST_WIDTH = 24;

export function table(header: readonly string[], rows: readonly (readonly string[])[], width?: number): string[] {
  return aligned([header, ...rows], width).flat();
}

/** The lines of each row. All rows have the same length; only the last cell may hold colours. */
export function aligned(rows: readonly (readonly string[])[], width = Number.POSITIVE_INFINITY): string[][] {
  const columns = (rows[0] ?? []).slice(0, -1);
  const widths = columns.map((_cell, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const margin = widths.reduce((sum, each) => sum + each + 2, 0);
  return rows.map((row) => {
    const start = row.slice(0, -1).map((cell, column) => cell.padEnd((widths[column] ?? 0) + 2));
    const last = row.at(-1) ?? '';
    const room = width - margin;
    if (room < LEAST_WIDTH && last.length > room)
      return [start.join('').trimEnd(), ...wrapped(last, width - 4).map((line) => `    ${line.trimStart()}`)];
    return wrapped(last, room).map((line, index) =>
      `${index === 0 ? start.join('') : ' '.repeat(margin)}${line}`.trimEnd(),
    );
  });
}

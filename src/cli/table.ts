/** Owns plain tables: columns as wide as their widest cell, two blanks apart, nothing else. */

export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return aligned([header, ...rows]);
}

/** Rows of the same length; a cell with colours in it is as wide as it looks only in the last column. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_cell, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

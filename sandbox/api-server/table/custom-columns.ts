/** The columns of custom kinds: the name, then the columns of the definition, or the age if it defines no columns. */
import { age } from './age.ts';
import type { Column } from './column.ts';
import { NAME } from './column.ts';
import { parseJsonPath } from './json-path.ts';

/** One entry of `additionalPrinterColumns`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  readonly priority?: number;
  readonly jsonPath: string;
}

const AGE: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

export function customColumns(printed: readonly PrinterColumn[] = []): Column[] {
  return [NAME, ...(printed.length === 0 ? [AGE] : printed).map(columnOf)];
}

function columnOf({ name, type, format = '', priority = 0, jsonPath }: PrinterColumn): Column {
  const find = parseJsonPath(jsonPath) ?? (() => []);
  return {
    name,
    type,
    format,
    priority,
    cell(object, now) {
      const found = find(object);
      if (found.length === 0) return null;
      if (type === 'string') return textOf(found[0]);
      return cellOf(type, found[0], now);
    },
  };
}

function textOf(value: unknown): string {
  if (value === null) return '<nil>';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns null if the value does not have the type of the column. */
function cellOf(type: string, value: unknown, now: number): unknown {
  if (type === 'date') return typeof value === 'string' ? age(value, now) : null;
  if (type === 'integer') return typeof value === 'number' ? Math.trunc(value) : null;
  if (type === 'number') return typeof value === 'number' ? value : null;
  return typeof value === 'boolean' ? value : null;
}

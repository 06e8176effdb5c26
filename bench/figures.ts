/** What a benchmark finds: figures with a goal, tables that say what they are made of, and both as lines. */
import { table } from '../src/cli/phrases.ts';

export interface Goal {
  /** Whether the figure has to be at least or at most the limit. */
  readonly bound: 'least' | 'most';
  readonly limit: number;
}

export interface Figure {
  /** Its name in the JSON object. */
  readonly key: string;
  readonly value: number;
  readonly unit: string;
  readonly goal?: Goal;
  /** What it is made of: the two sides of a ratio, or what was measured beside it in the same run. */
  readonly madeOf: string;
}

export interface Detail {
  readonly title: string;
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Findings {
  readonly figures: readonly Figure[];
  readonly details: readonly Detail[];
}

const SIGNS = { least: '≥', most: '≤' } as const;

export function renderFindings({ figures, details }: Findings): string[] {
  const rows = figures.map(({ key, value, unit, goal, madeOf }) => [
    key,
    formatNumber(value),
    unit,
    goal ? `${SIGNS[goal.bound]} ${goal.limit}` : '',
    goal ? verdict(value, goal) : '',
    madeOf,
  ]);
  return [
    ...table(['FIGURE', 'VALUE', 'UNIT', 'GOAL', '', 'MADE OF'], rows),
    ...details.flatMap(({ title, header, rows: cells }) => [
      '',
      `${title}:`,
      ...table(header, cells),
    ]),
  ];
}

/** One flat object on one line. */
export function renderJson(figures: readonly Figure[]): string {
  return JSON.stringify(Object.fromEntries(figures.map(({ key, value }) => [key, rounded(value)])));
}

/** Three significant digits are all that such measurements bear. */
export function formatNumber(value: number): string {
  return value < 100 ? String(Number(value.toPrecision(3))) : value.toFixed(0);
}

/** Of the value as the JSON has it, so that both say the same. */
function verdict(value: number, { bound, limit }: Goal): string {
  return (bound === 'least' ? rounded(value) >= limit : rounded(value) <= limit) ? 'met' : 'MISSED';
}

/** Three digits after the point are more than any goal has. */
function rounded(value: number): number {
  return Number(value.toFixed(3));
}

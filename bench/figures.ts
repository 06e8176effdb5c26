/**
 * Defines the results of a benchmark: figures with a goal, and tables with the values of which the figures are made. It
 * also prints them as lines.
 */
import { table } from '../src/cli/phrases.ts';

export interface Goal {
  /** Says whether the value must be at least the limit or at most the limit. */
  readonly bound: 'least' | 'most';
  readonly limit: number;
}

export interface Figure {
  /** The name of the figure in the JSON object. */
  readonly key: string;
  readonly value: number;
  readonly unit: string;
  readonly goal?: Goal;
  /** The values of which the figure is made: the two sides of a ratio, or other values from the same run. */
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

/** Returns all figures as one flat JSON object on one line. */
export function renderJson(figures: readonly Figure[]): string {
  return JSON.stringify(Object.fromEntries(figures.map(({ key, value }) => [key, rounded(value)])));
}

/** Rounds to three significant digits, because the measurements are not more precise. */
export function formatNumber(value: number): string {
  return value < 100 ? String(Number(value.toPrecision(3))) : value.toFixed(0);
}

/** Judges the rounded value, which the JSON also contains, so that both outputs agree. */
function verdict(value: number, { bound, limit }: Goal): string {
  return (bound === 'least' ? rounded(value) >= limit : rounded(value) <= limit) ? 'met' : 'MISSED';
}

/** Rounds to three decimal places, because no goal has more. */
function rounded(value: number): number {
  return Number(value.toFixed(3));
}

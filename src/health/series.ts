/** Prints labels of series and alerts, within limits. */
import { isRecord } from '../util/json.ts';
import { listedOneByOne } from '../util/phrases.ts';

export type Labels = Readonly<Record<string, string>>;

/** The most labels that are printed. */
const MOST_LABELS = 4;
/** The most characters of a printed value. */
const LONGEST_VALUE = 60;
/** The most series or alerts that a message names. */
export const MOST_NAMED = 3;

/** Returns those entries of `value` that are texts. */
export function labelsIn(value: unknown): Labels {
  if (!isRecord(value)) return {};
  const entries = Object.entries(value);
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** Returns for example `job=api, instance=10.0.0.1:80`; empty without labels. */
export function shownLabels(labels: Labels, without: readonly string[] = []): string {
  const entries = Object.entries(labels).filter(([name]) => !without.includes(name));
  const shown = entries.slice(0, MOST_LABELS).map(([name, value]) => `${name}=${clipped(value)}`);
  if (entries.length > MOST_LABELS) shown.push('…');
  return shown.join(', ');
}

/** Joins the first names, and adds the number of the other names. */
export function firstOf(all: readonly string[]): string {
  return listedOneByOne(all, MOST_NAMED);
}

export function clipped(text: string, most = LONGEST_VALUE): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

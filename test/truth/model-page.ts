/** The tables of docs/internals/truth.md about what is told in the states of the model. */
import { readFileSync, writeFileSync } from 'node:fs';
import { row } from '../model/safety-page.ts';
import { TOLD_INVARIANTS } from './model-invariants.ts';
import { KNOWN } from './model-known.ts';
import { TOLD_MISTAKES } from './model-mistakes.ts';
import type { Visit } from './model-visit.ts';

const PAGE = new URL('../../docs/internals/truth.md', import.meta.url);

export function readTruthPage(): string {
  return readFileSync(PAGE, 'utf8');
}

export function writeTruthPage(text: string): void {
  writeFileSync(PAGE, text);
}

export function toldInvariantRows(): string[] {
  return [
    '| invariant | says | a planted mistake that breaks it |',
    '|---|---|---|',
    ...TOLD_INVARIANTS.map(({ name, sentence }) => {
      const planted = TOLD_MISTAKES.filter(({ breaks }) => breaks === name);
      return row(`\`${name}\``, sentence, planted.map((mistake) => mistake.name).join('; '));
    }),
  ];
}

export function knownRows(): string[] {
  return [
    '| what is told | breaks |',
    '|---|---|',
    ...KNOWN.map(({ row: words, invariant }) => row(words, `\`${invariant}\``)),
    ...(KNOWN.length === 0 ? [row('none is known', '')] : []),
  ];
}

export const VISIT_HEAD = [
  '| cluster | states | renderings | renderings with different truths | invariants |',
  '|---|---|---|---|---|',
];

export function visitRow(name: string, visit: Visit): string {
  const { states, renderings, judged, concerned } = visit;
  const counts = [states, renderings, judged].map((count) => count.toLocaleString('en'));
  return row(name, ...counts, concerned.size);
}

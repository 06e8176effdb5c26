/** Tests that the index of the runbook has every reason. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { REASONS } from '../../src/engine/model/reasons.ts';
import { ROOT } from './tree.ts';

const [INDEX = ''] = readFileSync(`${ROOT}docs/runbook.md`, 'utf8').split('\n## ');
const rows = INDEX.split('\n').filter(
  (line) => line.startsWith('| ') && !line.startsWith('| you see'),
);
const namesIn = (text: string): string[] =>
  [...text.matchAll(/`([A-Z][A-Za-z]+)`/g)].map(([, name = '']) => name);

test('every reason is in the index, once', () => {
  const symptoms = rows.map((row) => row.split(' | ')[0] ?? '');
  const reasons = symptoms.flatMap((symptom) => namesIn(symptom.replaceAll(/state `\w+`/g, '')));
  expect(reasons.toSorted()).toEqual(Object.keys(REASONS).toSorted());
});

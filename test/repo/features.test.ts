/**
 * Tests the table of features: no row is missing, each feature has evidence that exists, and only a missing feature has
 * no evidence.
 */
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { allFeatures, featureReference } from '../../tools/reference/features.ts';
import { EXCEPTIONS } from '../../tools/reference/features-by-dialect.ts';
import type { Feature } from '../../tools/reference/features-data.ts';
import { COMMANDS } from '../support/commands.ts';
import { ROOT } from './tree.ts';

const ROWS = 86;

const SCRIPTS = (
  JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { scripts: Record<string, string> }
).scripts;

function isThere(evidence: string): boolean {
  const script = /^npm run ([\w:-]+)$/.exec(evidence)?.[1];
  if (script !== undefined) return Object.hasOwn(SCRIPTS, script);
  const command = /^refit ([\w-]+)/.exec(evidence)?.[1];
  if (command !== undefined) return COMMANDS.some(({ name }) => name === command);
  return evidence.endsWith('.test.ts') && existsSync(`${ROOT}${evidence}`);
}

function problemsOf({ name, state, evidence, remark }: Feature): string[] {
  return [
    ...(state !== 'no' && evidence.length === 0 ? [`${name}: has no evidence`] : []),
    ...(state === 'no' && evidence.length > 0 ? [`${name}: has evidence, but is no`] : []),
    ...(state === 'partly' && remark === undefined
      ? [`${name}: does not say what is missing`]
      : []),
    ...evidence.filter((each) => !isThere(each)).map((each) => `${name}: there is no ${each}`),
  ];
}

test('every row has evidence that exists', () => {
  expect(allFeatures().flatMap(problemsOf)).toEqual([]);
});

test('no row is missing, and none is there twice', () => {
  const numbers = [...featureReference().matchAll(/^\| (\d+) \|/gm)].map(([, number]) =>
    Number(number),
  );
  expect(numbers).toEqual(Array.from({ length: ROWS }, (_, index) => index + 1));
  expect(new Set(allFeatures().map(({ name }) => name)).size).toBe(ROWS);
});

test('every exception for a dialect is about a feature that exists', () => {
  const known = allFeatures().flatMap(({ name, state }) => (state === 'no' ? [] : [name]));
  expect(Object.keys(EXCEPTIONS).filter((name) => !known.includes(name))).toEqual([]);
});

/**
 * Tests that the code never uses an arbitrary text as a key of a plain object, because the text could name an inherited
 * member such as `constructor`. Also tests that the code never calls the `toString` of parsed JSON.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { unsafeReadings } from './foreign-keys.ts';
import { ROOT } from './tree.ts';

test('text is looked up by ownMember alone, and unknown values are read by scalarText', () => {
  const ours = unsafeReadings(ROOT, 'tsconfig.json').filter(
    (place) => place.startsWith('src/') && !/^\S+\.test\.ts:/.test(place),
  );
  expect(ours.map((place) => place.replace(/:\d+:/, ':')).toSorted()).toEqual([
    // A thrown value is an error, or a value that this program made.
    'src/health/cel.ts: String(error)',
    'src/util/errors.ts: String(thrown)',
    'src/util/own-member.ts: record[key]',
  ]);
});

test('finds each form of such a reading, and no look-up of a known word', () => {
  const folder = `${mkdtempSync(join(tmpdir(), 'refit-look-ups-'))}/`;
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const code = [
    'declare const [all, text, word]: [Record<string, number>, string, "a" | "b"];',
    'export const one = all[text];',
    'export const two = all[`x/${text}`];',
    'export const { [text]: three } = all;',
    'export const four = text in all;',
    'declare const json: unknown;',
    'export const [six, seven] = [String(json), Number(json)];',
    'export const [eight, nine] = [String(text), Number(text)];',
    'export const five = [all[word], all["a"], [1][0], "a" in all];',
  ];
  writeFileSync(`${folder}code.ts`, code.join('\n'));
  writeFileSync(`${folder}tsconfig.json`, '{"compilerOptions":{"types":[]},"files":["code.ts"]}');
  expect(unsafeReadings(folder, 'tsconfig.json')).toEqual([
    'code.ts:2: all[text]',
    'code.ts:3: all[`x/${text}`]',
    'code.ts:4: [text]: three',
    'code.ts:5: text in all',
    'code.ts:7: String(json)',
    'code.ts:7: Number(json)',
  ]);
});

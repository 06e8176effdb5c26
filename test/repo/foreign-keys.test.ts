/** Proves that no text is looked up in a plain object, where it could reach an inherited member such as `constructor`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lookUpsOfText } from './foreign-keys.ts';
import { ROOT } from './tree.ts';

test('text is looked up by ownMember alone', () => {
  const ours = lookUpsOfText(ROOT, 'tsconfig.json').filter(
    (place) => place.startsWith('src/') && !/^\S+\.test\.ts:/.test(place),
  );
  expect(ours).toEqual(['src/util/own-member.ts:11: record[key]']);
});

test('finds each form of such a look-up, and no look-up of a known word', () => {
  const folder = `${mkdtempSync(join(tmpdir(), 'refit-look-ups-'))}/`;
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const code = [
    'declare const [all, text, word]: [Record<string, number>, string, "a" | "b"];',
    'export const one = all[text];',
    'export const two = all[`x/${text}`];',
    'export const { [text]: three } = all;',
    'export const four = text in all;',
    'export const five = [all[word], all["a"], [1][0], "a" in all];',
  ];
  writeFileSync(`${folder}code.ts`, code.join('\n'));
  writeFileSync(`${folder}tsconfig.json`, '{"compilerOptions":{"types":[]},"files":["code.ts"]}');
  expect(lookUpsOfText(folder, 'tsconfig.json')).toEqual([
    'code.ts:2: all[text]',
    'code.ts:3: all[`x/${text}`]',
    'code.ts:4: [text]: three',
    'code.ts:5: text in all',
  ]);
});

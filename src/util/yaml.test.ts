/** Shows that YAML of any shape is read as kubectl reads it, in linear time, or refused in one sentence. */
import { expect, test } from 'vitest';
import { KEYS_OF_KUBECTL, READ_BY_KUBECTL } from '../../test/support/builders/kubectl-yaml.ts';
import { parseYaml, writeYaml } from './yaml.ts';

function fail(why: string): never {
  throw new Error(why);
}

test('documents in order, with anchors and merged keys', () => {
  expect(parseYaml('a: &a {x: 1}\nb: {<<: *a, z: 2}\n---\n- 1\n', fail)).toEqual([
    { a: { x: 1 }, b: { x: 1, z: 2 } },
    [1],
  ]);
  expect(parseYaml('a: &a {x: 1}\nb: &b {z: 2}\nc:\n  <<: *a\n  <<: *b\n', fail)).toEqual([
    { a: { x: 1 }, b: { z: 2 }, c: { x: 1, z: 2 } },
  ]);
  expect(parseYaml('', fail)).toEqual([]);
});

test.each([
  ['a: 1\nb: 2\na: 3\n', 'Map keys must be unique at line 3, column 1'],
  ['a: [', 'Flow sequence in block collection must be sufficiently indented'],
  ['a: *b', 'Unresolved alias'],
  ['['.repeat(50_000), 'it is nested too deeply'],
  [
    `a0: &a0 [x,x]\n${Array.from({ length: 30 }, (_, at) => `a${at + 1}: &a${at + 1} [*a${at},*a${at}]`).join('\n')}`,
    'its aliases repeat too much; write the values out',
  ],
])('%.20s', (text, sentence) => {
  expect(() => parseYaml(text, fail)).toThrow(sentence);
});

test.each(READ_BY_KUBECTL)('unquoted, as kubectl reads it: %s', (written, value) => {
  expect(parseYaml(`field: ${written}\n`, fail)).toEqual([{ field: value }]);
  expect(parseYaml(`%YAML 1.2\n---\n- ${written}\n`, fail)).toEqual([[value]]);
});

test.each(KEYS_OF_KUBECTL)('a key, as kubectl reads it: %s', (written, key) => {
  expect(parseYaml(`${written}: it\n`, fail)).toEqual([{ [key]: 'it' }]);
});

test.each(['.inf', '-.Inf', '+.INF', '.nan'])('no number of JSON: %s', (written) => {
  const sentence = `${written} is no number of JSON, and kubectl refuses it`;
  expect(() => parseYaml(`field: ${written}\n`, fail)).toThrow(sentence);
  expect(parseYaml(`field: "${written}"\n`, fail)).toEqual([{ field: written }]);
});

test('documents with comments only, and nothing between marks', () => {
  expect(parseYaml('# a\n---\na: 1\n---\n# b\n---\nb: 1\n---\n', fail)).toEqual([
    { a: 1 },
    null,
    { b: 1 },
    null,
  ]);
});

test('what is written is read again as the same texts, by kubectl too', () => {
  const texts = [...READ_BY_KUBECTL, ...KEYS_OF_KUBECTL].map(([written]) => written);
  expect(parseYaml(writeYaml(texts), fail)).toEqual([texts]);
  const keyed = Object.fromEntries(texts.map((text) => [text, text]));
  expect(parseYaml(writeYaml(keyed), fail)).toEqual([keyed]);
  const plain = { count: 3, isOn: true, none: null, list: [], text: 'worker1 waits' };
  expect(writeYaml(plain)).toBe(
    'count: 3\nisOn: true\nnone: null\nlist: []\ntext: worker1 waits\n',
  );
});

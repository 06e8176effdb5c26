/** Shows that YAML of any shape is read in linear time or refused in one sentence. */
import { expect, test } from 'vitest';
import { parseYaml } from './yaml.ts';

function fail(why: string): never {
  throw new Error(why);
}

test('documents in order, with anchors and merged keys', () => {
  expect(
    parseYaml('a: &a {x: 1}\nb: {<<: *a, z: 2}\n---\n- 1\n', fail, { version: '1.1' }),
  ).toEqual([{ a: { x: 1 }, b: { x: 1, z: 2 } }, [1]]);
  expect(
    parseYaml('a: &a {x: 1}\nb: &b {z: 2}\nc:\n  <<: *a\n  <<: *b\n', fail, { version: '1.1' }),
  ).toEqual([{ a: { x: 1 }, b: { z: 2 }, c: { x: 1, z: 2 } }]);
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

/**
 * Tests that YAML of any shape is read as kubectl reads it, in linear time, or refused in one
 * sentence.
 */
import { expect, test } from 'vitest';
import { KEYS_OF_KUBECTL, READ_BY_KUBECTL } from '../../test/support/builders/kubectl-yaml.ts';
import { growthOf } from '../../test/support/growth.ts';
import {
  parseFirstYamlDocument,
  parseForeignYaml,
  parseYaml,
  parseYamlDocument,
  writeYaml,
} from './yaml.ts';

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
  ['a `---` at its end', 'a: 1\n---\n'],
  ['a `---` at its end without a line break', '---\na: 1\n---'],
  ['a comment with apiVersion before its first `---`', '# apiVersion: v1\n---\na: 1\n'],
  ['a comment with apiVersion as its first document', '---\n# apiVersion: v1\n---\na: 1\n'],
  ['a comment with apiVersion as its last document', 'a: 1\n---\n# apiVersion: v1\n'],
  ['merge keys', '<<: {a: 1}\n'],
  ['lines that end as on Windows', '---\r\na: 1\r\n---\r\n'],
  ['a byte order mark', '\uFEFFa: 1\n---\n'],
])('a text with one document and %s is one document for every reader', (_name, text) => {
  for (const read of [parseYamlDocument, parseFirstYamlDocument, parseForeignYaml])
    expect(read(text, fail)).toEqual({ a: 1 });
});

test('a text without a document is null, and only a kubeconfig may have several documents', () => {
  for (const read of [parseYamlDocument, parseFirstYamlDocument, parseForeignYaml])
    expect(read('# apiVersion: v1\n---\n', fail)).toBeNull();
  for (const read of [parseYamlDocument, parseForeignYaml])
    expect(() => read('a: 1\n---\nb: 2\n', fail)).toThrow(
      'it has 2 YAML documents, and may have only one',
    );
  expect(parseFirstYamlDocument('---\n---\na: 1\n---\nb: 2\n', fail)).toEqual({ a: 1 });
});

test.each([
  ['a: 1\nb: 2\na: 3\n', 'Map keys must be unique at line 3, column 1'],
  ['a: [', 'Flow sequence in block collection must be sufficiently indented'],
  ['a: *b', 'Unresolved alias'],
  ['&a [*a]', 'its aliases repeat too much; write the values out'],
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
  const sentence = `${written} is not a number in JSON, and kubectl refuses it`;
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

const repeated = (unit: string) => (bytes: number) =>
  unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)));

/** Functions that return a text of about this many bytes. */
const HOSTILE: Readonly<Record<string, (bytes: number) => string>> = {
  tabs: repeated('\t: \n'),
  'nested pairs': repeated('a: b: '),
  documents: repeated('---\n'),
  dashes: repeated('-\n'),
  'open lists': repeated('['),
  'closed lists': repeated(']'),
  'open maps': repeated('{'),
  'nested dashes': repeated('- '),
  questions: repeated('? '),
  'the same key': repeated('a: 1\n'),
  'empty lines': repeated('\n'),
  comments: repeated('#\n'),
  anchors: repeated('- &a x\n'),
  'an anchor for each alias': repeated('- &a x\n- *a\n'),
  'few aliases after many anchors': (bytes) =>
    repeated('- &a x\n')(bytes / 2) + repeated('- *a\n')(bytes / 2),
  'one map merged often': (bytes) =>
    `- &a {${Array.from({ length: bytes / 16 }, (_, at) => `k${at}: 1`).join()}}\n${repeated('- {<<: *a}\n')(bytes / 2)}`,
  'aliases of a list of aliases of nothing': (bytes) =>
    `- &e []\n- &a [${repeated('*e,')(bytes / 2)}]\n${repeated('- *a\n')(bytes / 2)}`,
  'aliases of a list of nothing': (bytes) =>
    `- &a [${repeated('[],')(bytes / 2)}]\n${repeated('- *a\n')(bytes / 2)}`,
};

test.each(Object.entries(HOSTILE))('read or refused in linear time: %s', (_name, textOf) => {
  const read = (bytes: number): void => {
    try {
      parseYaml(textOf(bytes), fail);
    } catch {
      // The text may be refused, because only the time counts here.
    }
  };
  // For eight times the size, linear work takes eight times as long, and quadratic work takes sixty-four times as long.
  expect(growthOf(read, 2 * 1024, 8, 28)).toBeLessThan(28);
});

test('few aliases of lists of aliases cost no more than what is written', () => {
  const text = (aliases: number): string =>
    `- &e []\n- &a [${'*e,'.repeat(aliases)}]\n${'- *a\n'.repeat(aliases)}`;
  expect(growthOf((aliases) => parseYaml(text(aliases), fail), 30, 8, 28)).toBeLessThan(28);
});

test('a thousand aliases are read, and no more', () => {
  const text = (aliases: number): string =>
    Array.from({ length: aliases }, (_, at) => `- &a${at} x\n- *a${at}\n`).join('');
  expect(parseYaml(text(1000), fail)).toEqual([Array.from({ length: 2000 }, () => 'x')]);
  expect(() => parseYaml(text(1001), fail)).toThrow('its aliases repeat too much');
});

test('text that no administrator wrote is refused unread above 64 KiB', () => {
  const longest = `a: ${'x'.repeat(64 * 1024 - 3)}`;
  expect(parseForeignYaml(longest, fail)).toHaveProperty('a');
  expect(() => parseForeignYaml(`${longest}x`, fail)).toThrow(
    'it has 65537 bytes, and at most 65536 are read',
  );
  expect(() => parseForeignYaml('\u00e4'.repeat(40_000), fail)).toThrow('it has 80000 bytes');
});

/** Finds Markdown that is written without the tag that escapes its values. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', 'src');

/** A text of the source: a template, or a string in single or double quotes. `tag` stands in front of a template. */
const TEXT = /(?<tag>\w*)`(?<template>(?:[^`\\]|\\.)*)`|'(?<single>(?:[^'\\\n]|\\.)*)'/gs;
/** A heading, a row or the ruler of a table, or an item that begins with a value. */
const MARKDOWN = /^(?:#{1,6} \$\{|#{2,6} [A-Z]|# [A-Z].*\$\{|\| |\|-|[*-] \$\{)/m;
/** Files whose texts look like Markdown, and what the texts are. */
const OTHER: Readonly<Record<string, string>> = {
  'cli/why/turn-file.ts': 'text for a terminal, with titles and differences between two texts',
  'runtime/openmetrics.ts': 'metrics, whose comments begin with #',
};

/** Returns the texts in a source that are Markdown and have no tag. */
function untagged(source: string): string[] {
  return [...source.matchAll(TEXT)].flatMap(({ groups = {} }) => {
    const { tag = '', template, single = '' } = groups;
    return tag !== 'md' && MARKDOWN.test(template ?? single) ? [template ?? single] : [];
  });
}

test.each([
  ['const a = `| ${cells.join()} |`;', 1],
  ['const a = `# Upgrade to ${version}`;', 1],
  ['const a = `* ${line}`;', 1],
  ["const a = '## Found at the end';", 1],
  ['const a = md`# ${title}`;', 0],
  ['const a = md`| ${name} |`;', 0],
  ["const a = '# uses: parts/a.sh';", 0],
])('in the source %s, the test finds %i texts of Markdown without the tag', (source, count) => {
  expect(untagged(source)).toHaveLength(count);
});

test('every text of Markdown has the tag that escapes its values', () => {
  const files = globSync('**/*.ts', { cwd: ROOT }).filter((name) => !name.endsWith('.test.ts'));
  expect(files.length).toBeGreaterThan(100);
  const found = files.flatMap((name) =>
    untagged(readFileSync(join(ROOT, name), 'utf8')).map((text) => [name, text]),
  );
  expect(found.filter(([name = '']) => !(name in OTHER))).toEqual([]);
  expect(new Set(found.map(([name]) => name))).toEqual(new Set(Object.keys(OTHER)));
});

/** Tests that each link between our pages leads to a file that exists and to a heading in it. */
import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import { expect, test } from 'vitest';
import type { SourceFile } from './tree.ts';
import { filesOf, ROOT, sourceFile } from './tree.ts';

const LINK = /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g;

/** Broken links of the pages. Headings are looked up in `pages` only. */
function deadLinks(pages: readonly SourceFile[]): string[] {
  const anchors = new Map(pages.map(({ path, text }) => [path, anchorsOf(text)]));
  return pages.flatMap(({ path, text }) =>
    [...text.matchAll(LINK)]
      .filter(([, to = '', anchor]) => {
        const target = to === '' ? path : posix.join(posix.dirname(path), to);
        if (anchor !== undefined) return anchors.get(target)?.has(anchor) !== true;
        return !anchors.has(target) && !existsSync(`${ROOT}${target}`);
      })
      .map(([link]) => `${path}: ${link.slice(1)}`),
  );
}

/**
 * Returns the anchors of the headings in the form that GitHub uses: lower case, words joined by hyphens, no
 * punctuation.
 */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

test('every link leads somewhere', () => {
  expect(deadLinks(filesOf('*.md', 'docs/**/*.md', 'examples/*.md'))).toEqual([]);
});

/** Files and folders of the repository that pages name, and that are not there. */
function missingFiles(pages: readonly SourceFile[]): string[] {
  return pages.flatMap(({ path, text }) =>
    [...text.matchAll(/`((?:src|test|tools|sandbox|bench|deploy|docs)\/[\w./-]*\w\/?)`/g)]
      .filter(([, named]) => !existsSync(`${ROOT}${named}`))
      .map(([, named]) => `${path}: ${named}`),
  );
}

test('every file that a page names exists', () => {
  expect(
    missingFiles(
      filesOf('*.md', 'docs/{guides,internals}/**/*.md', 'docs/*.md', 'docs/reference/tested.md'),
    ),
  ).toEqual([]);
  expect(missingFiles([sourceFile('docs/a.md', '`src/none.ts`, `src/`, `src/<name>/`')])).toEqual([
    'docs/a.md: src/none.ts',
  ]);
});

test('a link to no file and to no heading: found', () => {
  const page =
    '# The `a` page, again\n[1](b.md) [2](b.md#there) [3](#the-a-page-again) [4](https://example.com/x)\n';
  const other = '## Here\n[5](b.md#here) [6](c.md) [7](#nowhere) [8](../package.json)\n';
  expect(deadLinks([sourceFile('docs/a.md', page), sourceFile('docs/b.md', other)])).toEqual([
    'docs/a.md: (b.md#there)',
    'docs/b.md: (c.md)',
    'docs/b.md: (#nowhere)',
  ]);
});

/** Reads which tests a page of the documentation names as proof, and finds them in the repository. */
import { existsSync, readFileSync } from 'node:fs';
import { ROOT } from './tree.ts';

export interface Claim {
  readonly path: string;
  /** The title of a test or of a row of its table; undefined when the page names only a file. */
  readonly name: string | undefined;
}

/**
 * Returns the tests that a text names. It names a test by its file in backquotes, followed by titles in double quotes.
 */
export function claimsIn(text: string): Claim[] {
  return [...text.matchAll(/`((?:src|test)\/[^`]+\.test\.ts)`((?:,? "[^"]+")*)/g)].flatMap(
    ([, path = '', names = '']) => {
      const quoted = [...names.matchAll(/"([^"]+)"/g)];
      return quoted.length === 0
        ? [{ path, name: undefined }]
        : quoted.map(([, name]) => ({ path, name }));
    },
  );
}

/** Finds the title as a string of its own, not in a comment. */
export function isThere({ path, name }: Claim): boolean {
  if (name === undefined || !existsSync(`${ROOT}${path}`)) return false;
  const text = readFileSync(`${ROOT}${path}`, 'utf8');
  return ["'", '"', '`'].some((quote) => text.includes(`${quote}${name}${quote}`));
}

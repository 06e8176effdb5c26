/** Owns the comparison of a registry of codes with the page that explains them and with their use. */
import type { SourceFile } from './tree.ts';

/** The codes that a reference page has a row for, in its order. */
export function documentedCodes(page: string): string[] {
  return [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, code = '']) => code);
}

/** The codes that no file names as a text. */
export function unusedCodes(codes: readonly string[], files: readonly SourceFile[]): string[] {
  return codes.filter((code) => !files.some(({ text }) => text.includes(`'${code}'`)));
}

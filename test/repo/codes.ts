/** Compares a registry of codes with the page that explains them and with their use. */
import type { SourceFile } from './tree.ts';

/** The codes of a reference page's rows, in its order. */
export function documentedCodes(page: string): string[] {
  return [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, code = '']) => code);
}

/** The codes that occur in no file as a string. */
export function unusedCodes(codes: readonly string[], files: readonly SourceFile[]): string[] {
  return codes.filter((code) => !files.some(({ text }) => text.includes(`'${code}'`)));
}

/** Owns reading the repository for its own tests: the TypeScript files, their layers and what they import. */
import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface Import {
  /** As it is written. */
  readonly specifier: string;
  /** The imported file from the root of the repository; undefined for packages and Node's own modules. */
  readonly path: string | undefined;
  /** Gone at run time. */
  readonly typeOnly: boolean;
}

export interface SourceFile {
  /** From the root of the repository, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
}

const STATEMENT = /^(?:import|export)\s+(type\s)?[^'";]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm;

/** A file as the rules see it; tests make such files up to plant a violation. */
export function sourceFile(path: string, text: string): SourceFile {
  const imports = [...text.matchAll(STATEMENT)].map(([, type, from, bare, dynamic]) => {
    const specifier = from ?? bare ?? dynamic ?? '';
    const relative = specifier.startsWith('.');
    return {
      specifier,
      path: relative ? posix.join(posix.dirname(path), specifier) : undefined,
      typeOnly: type !== undefined,
    };
  });
  return { path, text, imports };
}

/** The files that match, sorted by path. */
export function filesOf(...patterns: string[]): SourceFile[] {
  return globSync(patterns, { cwd: ROOT })
    .filter((path) => !path.startsWith('node_modules/'))
    .toSorted((a, b) => a.localeCompare(b))
    .map((path) => sourceFile(path, readFileSync(`${ROOT}${path}`, 'utf8')));
}

export function isTest({ path }: Pick<SourceFile, 'path'>): boolean {
  return path.endsWith('.test.ts');
}

/** What the product consists of: everything under src/ that is no test. */
export function productFiles(): SourceFile[] {
  return filesOf('src/**/*.ts').filter((file) => !isTest(file));
}

export function linesOf({ text }: Pick<SourceFile, 'text'>): number {
  return text.trimEnd().split('\n').length;
}

/** The value that the given share of `values` does not exceed, by nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

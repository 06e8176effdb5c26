/** Reads the repository for its own tests: files, and what TypeScript files import. */
import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface Import {
  /** As written in the file. */
  readonly specifier: string;
  /** The imported file, from the root of the repository; undefined for packages and Node's own modules. */
  readonly path: string | undefined;
  /** Not loaded at run time. */
  readonly typeOnly: boolean;
  /** Loaded by `import()`, when the program gets there. */
  readonly isLate: boolean;
}

export interface SourceFile {
  /** The path from the root of the repository, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
}

const STATEMENT =
  /^(?:import|export)\s+(type\s)?[^'";]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm;

/** Returns a file in the form in which the rules read it. Tests create files with this function to plant violations. */
export function sourceFile(path: string, text: string): SourceFile {
  const imports = [...text.matchAll(STATEMENT)].map(([, type, from, bare, dynamic]) => {
    const specifier = from ?? bare ?? dynamic ?? '';
    const relative = specifier.startsWith('.');
    return {
      specifier,
      path: relative ? posix.join(posix.dirname(path), specifier) : undefined,
      typeOnly: type !== undefined,
      isLate: dynamic !== undefined,
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

/** The text of a guide: its first page, and then the pages in the folder of the same name. */
export function guideText(name: string): string {
  const pages = filesOf(`docs/guides/${name}.md`, `docs/guides/${name}/*.md`);
  return pages.map(({ text }) => text).join('\n');
}

export function isTest({ path }: Pick<SourceFile, 'path'>): boolean {
  return path.endsWith('.test.ts');
}

/** The product: all of src/ except tests. */
export function productFiles(): SourceFile[] {
  return filesOf('src/**/*.ts').filter((file) => !isTest(file));
}

export function linesOf({ text }: Pick<SourceFile, 'text'>): number {
  return text.trimEnd().split('\n').length;
}

/** Measures functions with the linter's parser. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './tree.ts';

interface Diagnostic {
  message: string;
  filename: string;
  labels: { span: { line: number } }[];
}

export interface FunctionSize {
  /** File and first line. */
  readonly at: string;
  readonly lines: number;
}

/** Every function of more than one line in the given files or folders, without tests. */
export function functionSizes(paths: readonly string[]): FunctionSize[] {
  const folder = mkdtempSync(join(tmpdir(), 'refit-functions-'));
  try {
    const config = join(folder, 'oxlintrc.json');
    const rules = { 'max-lines-per-function': ['error', { max: 1 }] };
    writeFileSync(config, JSON.stringify({ categories: { correctness: 'off' }, rules }));
    const { stdout } = spawnSync(
      `${ROOT}node_modules/.bin/oxlint`,
      ['-c', config, '-f', 'json', '--ignore-pattern', '*.test.ts', ...paths],
      { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
    );
    return (JSON.parse(stdout) as { diagnostics: Diagnostic[] }).diagnostics.map(sizeOf);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function sizeOf({ message, filename, labels }: Diagnostic): FunctionSize {
  const lines = /has too many lines \((\d+)\)/.exec(message)?.[1];
  if (lines === undefined) throw new Error(`the linter's message has changed: ${message}`);
  return { at: `${filename}:${labels[0]?.span.line}`, lines: Number(lines) };
}

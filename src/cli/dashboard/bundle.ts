/** Builds the user interface and returns it. A build of Refit replaces this file with one that returns the finished files. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface UiFiles {
  readonly script: string;
  readonly style: string;
}

const TOOL = join(import.meta.dirname, '..', '..', '..', 'tools', 'ui.ts');

export async function uiFiles(): Promise<UiFiles> {
  const { stdout } = await promisify(execFile)(process.execPath, [TOOL]);
  const folder = stdout.trim();
  const [script, style] = await Promise.all(
    ['ui.js', 'ui.css'].map(async (name) => await readFile(join(folder, name), 'utf8')),
  );
  return { script: script ?? '', style: style ?? '' };
}

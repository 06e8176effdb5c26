/** Builds Refit before the first test of any project that starts it, and removes it after the last. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { BUILT } from '../sandbox/refit.ts';
import { buildRefit } from '../tools/build/refit.ts';

/** Vitest calls it once for each project, and undoes the first call last. All tests inherit the variable. */
export async function setup(project: TestProject): Promise<(() => void) | undefined> {
  if (process.env[BUILT] !== undefined) return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'refit-built-'));
  const build = async (): Promise<string> => await buildRefit(directory, 'readable');
  process.env[BUILT] = await build();
  project.onTestsRerun(async () => void (await build()));
  return () => {
    delete process.env[BUILT];
    rmSync(directory, { recursive: true });
  };
}

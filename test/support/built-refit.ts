/** Builds Refit before the first test of all projects that start Refit, and removes the build after the last test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { BUILT } from '../../sandbox/refit.ts';
import { buildRefit } from '../../tools/build/refit.ts';
import { SHARED } from './one-file.ts';

/**
 * Vitest calls this once for each project. The clean-up of the first call runs last. All tests inherit the environment
 * variables.
 */
export async function setup(project: TestProject): Promise<(() => void) | undefined> {
  if (process.env[BUILT] !== undefined) return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'refit-built-'));
  const build = async (): Promise<void> => {
    const refit = await buildRefit(join(directory, 'refit'), 'readable');
    // Only some tests need the one-file build. The first of these tests makes it.
    const oneFile = join(directory, 'one-file');
    rmSync(oneFile, { recursive: true, force: true });
    Object.assign(process.env, { [BUILT]: refit, [SHARED]: oneFile });
  };
  await build();
  project.onTestsRerun(build);
  return () => {
    delete process.env[BUILT];
    delete process.env[SHARED];
    rmSync(directory, { recursive: true });
  };
}

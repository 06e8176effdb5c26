/**
 * Runs each demonstration with the command of `npm start -- --dialect`. Tests that the demonstration ends without
 * intervention and prints its result.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DEMONSTRATIONS } from '../../sandbox/start/registry.ts';
import { run } from '../../tools/controlplane/run.ts';

const START = join(import.meta.dirname, '..', '..', 'sandbox', 'start.ts');

// The tests of a kept cluster run the first demonstration on a real control plane.
test.each(DEMONSTRATIONS.slice(1).map(({ dialect }) => dialect))('%s', async (dialect) => {
  const { ok, stdout, stderr } = await run(process.execPath, [START, '--dialect', dialect]);
  expect(ok, stdout + stderr).toBe(true);
  expect(stdout).toMatch(/Total time: (?:\d+ min(?: \d+ s)?|\d+ s)\.\n$/);
});

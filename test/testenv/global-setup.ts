/** Opens the pool of real control planes before the first test of any project that uses it, and closes it after the last. */
import type { TestProject } from 'vitest/node';
import { ControlPlanePool } from './control-plane-pool.ts';

/**
 * Vitest loads this file once for each project, so the data that all projects share is stored in a global variable of
 * the process.
 */
const KEY = Symbol.for('refit.test.control-planes');
const holder = globalThis as typeof globalThis & {
  [KEY]?: { projects: number; readonly pool: ControlPlanePool };
};

export function setup(project: TestProject): void {
  const shared = holder[KEY] ?? {
    projects: 0,
    pool: new ControlPlanePool(mostWorkers(project)),
  };
  holder[KEY] = shared;
  shared.projects += 1;
  project.provide('controlPlanes', shared.pool.address);
  project.provide('loans', shared.pool.loans);
}

export async function teardown(): Promise<void> {
  const shared = holder[KEY];
  if (shared === undefined) return;
  shared.projects -= 1;
  if (shared.projects > 0) return;
  delete holder[KEY];
  await shared.pool.stop();
}

/** Returns the maximum of all projects, because the first project may have fewer workers than a later project. */
function mostWorkers({ vitest }: TestProject): number {
  return Math.max(...vitest.projects.map(({ config }) => config.maxWorkers));
}

/** The test projects: which files each one runs, and in what isolation. */
import { defineConfig } from 'vitest/config';

const project = (name: string, include: string[], more: Record<string, unknown> = {}) => ({
  test: { name, include, testTimeout: 60_000, hookTimeout: 120_000, ...more },
});

/** Projects that talk to the real control plane share one, started by this file before the first test. */
const realControlPlane = { globalSetup: ['test/testenv/global-setup.ts'], pool: 'forks' };

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      project('unit', ['src/**/*.test.ts', 'test/repo/**/*.test.ts', 'test/faults/**/*.test.ts']),
      project('conformance', ['test/conformance/**/*.test.ts'], realControlPlane),
      project('testenv', ['test/testenv/**/*.test.ts'], realControlPlane),
      project('agent', ['test/agent/**/*.test.ts'], { pool: 'forks' }),
      project('model', ['test/model/**/*.test.ts']),
    ],
  },
});

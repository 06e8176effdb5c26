/** Owns the test projects: which files each one runs, in what isolation, and one after which other. */
import { defineConfig } from 'vitest/config';
import { CountReporter } from './tools/count-reporter.ts';

/** Projects with the same turn run side by side; those that start processes get the machine for themselves. */
const project = (name: string, turn: number, include: string[], more: Record<string, unknown> = {}) => ({
  test: { name, include, testTimeout: 60_000, hookTimeout: 120_000, sequence: { groupOrder: turn }, ...more },
});

const OVER_SSH = 'test/testenv/kubeadm.test.ts';

/** Projects that talk to the real control plane share one, started by this file before the first test. */
const realControlPlane = { globalSetup: ['test/testenv/global-setup.ts'], pool: 'forks' };

export default defineConfig({
  test: {
    maxWorkers: 2,
    reporters: ['default', new CountReporter()],
    projects: [
      project('unit', 0, [
        '{src,sandbox,tools,bench}/**/*.test.ts',
        'test/{repo,faults,toy,doubles,parity}/**/*.test.ts',
      ]),
      project('model', 0, ['test/model/**/*.test.ts']),
      project('agent', 1, ['test/agent/**/*.test.ts'], { pool: 'forks' }),
      project('ssh', 1, [OVER_SSH], realControlPlane),
      project('conformance', 2, ['test/conformance/**/*.test.ts'], realControlPlane),
      // One file after the other: a cluster has one Plan of each name.
      project('testenv', 3, ['test/testenv/**/*.test.ts'], {
        ...realControlPlane,
        fileParallelism: false,
        setupFiles: ['test/testenv/nothing-left.ts'],
        exclude: [OVER_SSH],
      }),
    ],
  },
});

/**
 * Defines how `npm run mutate` runs tests: one file stays loaded, and runs the tests that tools/mutate.ts names for a
 * part of the product.
 */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tools/mutate/serve-orders.ts'],
    passWithNoTests: true,
    runner: './tools/mutate/outer-runner.config.ts',
    // Tests run in a worker thread, because a BroadcastChannel reaches it.
    pool: 'threads',
    maxWorkers: 1,
    // The same setting as in the project `unit`.
    isolate: false,
    includeTaskLocation: true,
    // A change often makes a test wait in vain, so this wait is short. It is long enough for a machine with other work.
    expect: { poll: { timeout: 3000 } },
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});

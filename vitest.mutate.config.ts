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
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});

/** The tests that mutants are tried against: those that tools/mutate.ts names for a part of the product. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: (process.env['MUTATE_TESTS'] ?? 'src/**/*.test.ts').split(' '),
    // As in the project `unit`.
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});

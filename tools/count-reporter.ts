/** Prints the last line of a test run: `N passed, N failed, N skipped`. */
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** True if every test of a group of similar tests runs. By default only a sample of each kind runs. */
export const WHOLE = process.env['REFIT_WHOLE'] === '1';

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

export class CountReporter implements Reporter {
  readonly #print: (line: string) => void;
  readonly #isSample: boolean;

  constructor(print: (line: string) => void = console.log, isSample = !WHOLE) {
    this.#print = print;
    this.#isSample = isSample;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    for (const line of flakyOnes(modules))
      this.#print(`flaky: passed only at its second attempt: ${line}`);
    for (const module of modules)
      if (failedSetups(module) > 0)
        this.#print(
          `set-up failed: ${module.relativeModuleId}: ${countLine(countOf([module], []))}`,
        );
    if (this.#isSample)
      this.#print(
        'Tests that are alike may have run as a sample. To run all of them, set REFIT_WHOLE=1.',
      );
    this.#print(countLine(countOf(modules, unhandledErrors)));
  }
}

export function countLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/**
 * Counts the results. A file that cannot be loaded counts as one failed test. A set-up that fails and an error outside
 * of all tests count as one failed test as well.
 */
function countOf(
  modules: readonly TestModule[],
  unhandledErrors: readonly SerializedError[],
): Counts {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const module of modules) {
    counts.failed += failedSetups(module);
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      // A test that did not run counts as failed.
      counts[state === 'pending' ? 'failed' : state] += 1;
    }
  }
  return counts;
}

/**
 * Returns the number of failed set-ups: of the file, and of each suite in it. The tests of such a set-up did not run,
 * and Vitest reports them as skipped.
 */
function failedSetups(module: TestModule): number {
  return [module, ...module.children.allSuites()].filter((suite) => suite.errors().length > 0)
    .length;
}

/**
 * Returns the flaky tests, each in one line with the error of its first attempt. The error is shown because a rare
 * failure may not appear again soon.
 */
function flakyOnes(modules: readonly TestModule[]): string[] {
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  return tests
    .filter((test) => test.diagnostic()?.flaky)
    .map((test) => {
      const [error] = test.result().errors ?? [];
      const said = error?.message ?? '';
      const at = error?.stacks?.[0]?.line?.toString() ?? '';
      const name = `${test.module.relativeModuleId}${at && `:${at}`} > ${test.fullName}`;
      return `${name}${said && `: ${said.replaceAll(/\s+/g, ' ')}`}`;
    });
}

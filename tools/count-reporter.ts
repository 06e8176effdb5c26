/** Prints the last line of a test run: `N passed, N failed, N skipped`. */
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** Whether tests of many alike run whole; a sample of each kind is enough where nobody asks for more. */
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

/** A file that cannot be loaded counts as one failed test, and so does a set-up that fails, or an error outside of all tests. */
function countOf(
  modules: readonly TestModule[],
  unhandledErrors: readonly SerializedError[],
): Counts {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const module of modules) {
    counts.failed += failedSetups(module);
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      // A test that did not run did not pass.
      counts[state === 'pending' ? 'failed' : state] += 1;
    }
  }
  return counts;
}

/** Of the file, and of each suite in it. Their tests did not run, and are told as skipped. */
function failedSetups(module: TestModule): number {
  return [module, ...module.children.allSuites()].filter((suite) => suite.errors().length > 0)
    .length;
}

/** Each with what its first attempt said, in one line: a failure that is rare is not seen again soon. */
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

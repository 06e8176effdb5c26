/** Tests that the last line of a test run counts every failure. */
import { expect, test } from 'vitest';
import type { TestModule } from 'vitest/node';
import { CountReporter } from './count-reporter.ts';

/** The part of a module that the reporter reads. */
function moduleOf(
  states: readonly string[],
  errors: readonly string[] = [],
  flaky = false,
  suites: readonly (readonly string[])[] = [],
): TestModule {
  const tests = states.map((state) => ({
    result: () => ({
      state,
      errors: flaky ? [{ message: 'expected 1\n  to be 2', stacks: [{ line: 7 }] }] : [],
    }),
    diagnostic: () => ({ flaky }),
    fullName: 'a test',
    module: { relativeModuleId: 'a.test.ts' },
  }));
  const children = {
    allTests: () => tests,
    allSuites: () => suites.map((found) => ({ errors: () => found })),
  };
  return { relativeModuleId: 'a.test.ts', errors: () => errors, children } as unknown as TestModule;
}

test.each([
  ['nothing', [], [], '0 passed, 0 failed, 0 skipped'],
  [
    'several files',
    [moduleOf(['passed', 'failed']), moduleOf(['passed', 'skipped'])],
    [],
    '2 passed, 1 failed, 1 skipped',
  ],
  ['a test that never ran', [moduleOf(['pending'])], [], '0 passed, 1 failed, 0 skipped'],
  [
    'an error outside of every test',
    [moduleOf(['passed'])],
    [{ message: 'x' }],
    '1 passed, 1 failed, 0 skipped',
  ],
])('%s', (_, modules, errors, expected) => {
  const lines: string[] = [];
  new CountReporter((line) => lines.push(line), false).onTestRunEnd(modules, errors);
  expect(lines).toEqual([expected]);
});

test('a test that passed only at its second attempt is named, with what its first one said', () => {
  const lines: string[] = [];
  new CountReporter((line) => lines.push(line), false).onTestRunEnd(
    [moduleOf(['passed'], [], true)],
    [],
  );
  expect(lines).toEqual([
    'flaky: passed only at its second attempt: a.test.ts:7 > a test: expected 1 to be 2',
    '1 passed, 0 failed, 0 skipped',
  ]);
});

test.each([
  [
    'of a file, as when it does not load',
    moduleOf([], ['SyntaxError']),
    '0 passed, 1 failed, 0 skipped',
  ],
  [
    'of a suite',
    moduleOf(['passed', 'skipped'], [], false, [['expected 1 to be 2'], []]),
    '1 passed, 1 failed, 1 skipped',
  ],
])(
  'a set-up that fails counts as a failed test, and its file is named: %s',
  (_, module, expected) => {
    const lines: string[] = [];
    new CountReporter((line) => lines.push(line), false).onTestRunEnd([module], []);
    expect(lines).toEqual([`set-up failed: a.test.ts: ${expected}`, expected]);
  },
);

test('a sample is called one', () => {
  const lines: string[] = [];
  new CountReporter((line) => lines.push(line), true).onTestRunEnd([moduleOf(['passed'])], []);
  expect(lines).toEqual([
    'Tests that are alike may have run as a sample. To run all of them, set REFIT_WHOLE=1.',
    '1 passed, 0 failed, 0 skipped',
  ]);
});

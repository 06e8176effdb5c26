/** Tests that the last line of a test run counts every failure. */
import { expect, test } from 'vitest';
import type { TestModule } from 'vitest/node';
import { CountReporter } from './count-reporter.ts';

/** The part of a module that the reporter reads. */
function moduleOf(states: readonly string[], errors: readonly string[] = [], flaky = false): TestModule {
  const tests = states.map((state) => ({
    result: () => ({ state, errors: flaky ? [{ message: 'expected 1\n  to be 2', stacks: [{ line: 7 }] }] : [] }),
    diagnostic: () => ({ flaky }),
    fullName: 'a test',
    module: { relativeModuleId: 'a.test.ts' },
  }));
  return { errors: () => errors, children: { allTests: () => tests } } as unknown as TestModule;
}

test.each([
  ['nothing', [], [], '0 passed, 0 failed, 0 skipped'],
  [
    'several files',
    [moduleOf(['passed', 'failed']), moduleOf(['passed', 'skipped'])],
    [],
    '2 passed, 1 failed, 1 skipped',
  ],
  [
    'a file that does not load',
    [moduleOf([], ['SyntaxError']), moduleOf(['passed'])],
    [],
    '1 passed, 1 failed, 0 skipped',
  ],
  ['a test that never ran', [moduleOf(['pending'])], [], '0 passed, 1 failed, 0 skipped'],
  ['an error outside of every test', [moduleOf(['passed'])], [{ message: 'x' }], '1 passed, 1 failed, 0 skipped'],
])('%s', (_, modules, errors, expected) => {
  const lines: string[] = [];
  new CountReporter((line) => lines.push(line), false).onTestRunEnd(modules, errors);
  expect(lines).toEqual([expected]);
});

test('a test that passed only at its second attempt is named, with what its first one said', () => {
  const lines: string[] = [];
  new CountReporter((line) => lines.push(line), false).onTestRunEnd([moduleOf(['passed'], [], true)], []);
  expect(lines).toEqual([
    'flaky: passed only at its second attempt: a.test.ts:7 > a test: expected 1 to be 2',
    '1 passed, 0 failed, 0 skipped',
  ]);
});

test('a sample is called one', () => {
  const lines: string[] = [];
  new CountReporter((line) => lines.push(line), true).onTestRunEnd([moduleOf(['passed'])], []);
  expect(lines).toEqual([
    'Tests that are alike may have run as a sample. All of them: REFIT_WHOLE=1 npm test',
    '1 passed, 0 failed, 0 skipped',
  ]);
});

/** Tests that the user sees the whole error on one line: its code and every cause. */
import { describe, expect, test } from 'vitest';
import { ERRORS, EXIT, messageOf, RefitError } from './errors.ts';

describe('the message of', () => {
  const refused = new AggregateError([
    new Error('connect ECONNREFUSED ::1:6443'),
    new Error('connect ECONNREFUSED 127.0.0.1:6443'),
  ]);
  test.each<[string, unknown, string]>([
    ['an error', new Error('broken'), 'broken'],
    [
      'an error with causes',
      new Error('a', { cause: new Error('b', { cause: new Error('c') }) }),
      'a: b: c',
    ],
    [
      'an error that already contains its cause',
      new Error('cannot read a: b: c; try again', {
        cause: new Error('b', { cause: new Error('c') }),
      }),
      'cannot read a: b: c; try again',
    ],
    ['an error whose cause is no error', new Error('a', { cause: 'b' }), 'a: b'],
    [
      'several errors in one that says nothing itself, as for a host with two addresses',
      refused,
      'connect ECONNREFUSED ::1:6443, connect ECONNREFUSED 127.0.0.1:6443',
    ],
    [
      'the same as a cause',
      new Error('no answer', { cause: refused }),
      `no answer: ${messageOf(refused)}`,
    ],
    ['several errors in one that says something', new AggregateError([new Error('b')], 'a'), 'a'],
    ['a text', 'broken', 'broken'],
    ['nothing', undefined, 'undefined'],
    ['an object', { a: 1 }, '[object Object]'],
  ])('%s', (_name, thrown, message) => {
    expect(messageOf(thrown)).toBe(message);
  });
});

test('an error of ours is one line with code, message and advice, and keeps its cause', () => {
  const cause = new Error('ENOENT');
  const error = new RefitError('REFIT_FILE', ' cannot read\n  plan.yaml ', { cause });
  expect(error.line).toBe(
    'REFIT_FILE: cannot read plan.yaml (check the path and the content of the file)',
  );
  expect([error.exitCode, error.cause, error.name]).toEqual([EXIT.usage, cause, 'RefitError']);
  expect(error).toBeInstanceOf(Error);
});

test('several problems of one thing are a list for people, and one line for a log', () => {
  const options = { problems: ['spec.id: is missing', 'spec.url: is\nempty'], hint: 'correct it' };
  const error = new RefitError('REFIT_FILE', 'plan.yaml', options);
  expect(error.text.split('\n')).toEqual([
    'REFIT_FILE: plan.yaml: 2 errors (correct it)',
    '  spec.id: is missing',
    '  spec.url: is empty',
  ]);
  expect(error.line).toBe(
    'REFIT_FILE: plan.yaml: spec.id: is missing; spec.url: is empty (correct it)',
  );
  const [problem] = options.problems;
  const single = new RefitError('REFIT_FILE', 'plan.yaml', {
    ...options,
    problems: [problem ?? ''],
  });
  expect(single.text).toBe('REFIT_FILE: plan.yaml: spec.id: is missing (correct it)');
  expect(new RefitError('REFIT_REFUSED', '', options).text).toMatch(/^REFIT_REFUSED: 2 errors \(/);
});

test('what a server or a node put into an error cannot steer the terminal', () => {
  const error = new RefitError(
    'REFIT_UNREACHABLE',
    `answered 500: ${String.fromCharCode(0x1b)}[2J`,
  );
  expect(error.line).toMatch(/^REFIT_UNREACHABLE: answered 500: \uFFFD\[2J \(/u);
});

test('every code has an exit code that is not success, and advice without a full stop', () => {
  for (const [code, { exit, hint }] of Object.entries(ERRORS)) {
    expect(code).toMatch(/^REFIT_[A-Z_]+$/);
    expect(exit).toBeGreaterThan(0);
    expect(hint).not.toMatch(/\.$/);
  }
});

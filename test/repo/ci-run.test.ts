/**
 * Tests `.ci/run` with stand-ins for npm: all tiers run even if one fails, and the last line counts the results of all
 * tiers.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ROOT } from './tree.ts';

interface Answer {
  readonly says: string;
  readonly code: number;
}

const SCRIPTS = ['check', 'test', 'test:ui', 'test:real'] as const;
type Script = (typeof SCRIPTS)[number];

const PASSES: Answer = { says: '2 passed, 0 failed, 1 skipped', code: 0 };

/** Runs a copy of `.ci/run` with an npm that gives these answers. `again` is the answer of a second attempt. */
function ciRun(answers: Partial<Record<Script, Answer>>, again = PASSES) {
  const directory = mkdtempSync(join(tmpdir(), 'refit-ci-run-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  for (const folder of ['.ci', 'tools', 'bin']) mkdirSync(join(directory, folder));
  copyFileSync(join(ROOT, '.ci/run'), join(directory, '.ci/run'));
  const program = (name: string, lines: readonly string[]): void => {
    const path = join(directory, 'bin', name);
    writeFileSync(path, ['#!/bin/sh', ...lines, ''].join('\n'));
    chmodSync(path, 0o755);
  };
  const answer = ({ says, code }: Answer): string => `printf '%s\\n' '${says}'; exit ${code}`;
  const branch = (name: Script): string => `${name}) ${answer(answers[name] ?? PASSES)} ;;`;
  program('node', []);
  // The user is not root, so `.ci/run` installs no packages.
  program('id', ['echo 1000']);
  program('npx', ['echo "npx $*"', answer(again)]);
  program('npm', [
    'test "$1" = run && shift',
    'echo "npm $1"',
    `case $1 in ${SCRIPTS.map(branch).join(' ')} esac`,
  ]);
  const { stdout, status } = spawnSync('bash', [join(directory, '.ci/run')], {
    encoding: 'utf8',
    env: {
      PATH: `${join(directory, 'bin')}:${process.env['PATH']}`,
      HOME: directory,
      TMPDIR: directory,
    },
  });
  const lines = stdout.trimEnd().split('\n');
  return {
    started: lines.filter((line) => /^npm \S+$|^npx /.test(line)),
    last: lines.at(-1),
    status,
  };
}

const ALL = SCRIPTS.map((name) => `npm ${name}`);

test('the counts of the checks and of all tiers are added up', () => {
  expect(ciRun({})).toEqual({ started: ALL, last: '8 passed, 0 failed, 4 skipped', status: 0 });
});

test.each(SCRIPTS)('a failure in `%s`: all the others run, and the exit code is 1', (script) => {
  const failing = { says: '1 passed, 1 failed, 1 skipped', code: 1 };
  expect(ciRun({ [script]: failing })).toEqual({
    started: ALL,
    last: '7 passed, 1 failed, 4 skipped',
    status: 1,
  });
});

test('a tier that ends without its counts is one failed test', () => {
  expect(ciRun({ test: { says: 'killed', code: 137 } })).toEqual({
    started: ALL,
    last: '6 passed, 1 failed, 3 skipped',
    status: 1,
  });
});

const BROKEN_SETUP: Answer = {
  says: 'set-up failed: test/a.test.ts: 0 passed, 1 failed, 2 skipped\n5 passed, 1 failed, 2 skipped',
  code: 1,
};

test('a file whose set-up failed runs once more, and counts as it does then', () => {
  expect(ciRun({ test: BROKEN_SETUP })).toEqual({
    started: [
      'npm check',
      'npm test',
      'npx vitest run test/a.test.ts',
      'npm test:ui',
      'npm test:real',
    ],
    last: '13 passed, 0 failed, 4 skipped',
    status: 0,
  });
});

test('the second attempt of one tier does not hide the failure of another', () => {
  const failing = { says: '1 passed, 1 failed, 1 skipped', code: 1 };
  expect(ciRun({ test: failing, 'test:real': BROKEN_SETUP })).toEqual({
    started: [
      'npm check',
      'npm test',
      'npm test:ui',
      'npm test:real',
      'npx vitest run test/a.test.ts',
    ],
    last: '12 passed, 1 failed, 4 skipped',
    status: 1,
  });
});

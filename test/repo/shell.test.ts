/** Tests every shell script of the repository: a shell can parse it, and shellcheck finds nothing. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import {
  inputsOf,
  quoted,
  usedBy,
  wholeScript,
} from '../../src/dialects/kubeadm/host/filled-script.ts';
import { scriptFile } from '../../src/dialects/kubeadm/host/script-file.ts';
import { cacheDirectory } from '../../tools/controlplane/build.ts';
import { filesOf } from './tree.ts';

const SCRIPTS = filesOf('{examples,src,sandbox,test,tools}/**/*.sh', '.ci/run');
/** The path of shellcheck. `.ci/run` unpacks it from the Debian package. */
const SHELLCHECK = join(cacheDirectory(process.env), '..', 'shellcheck/usr/bin/shellcheck');

const STEP_VALUES = ['ROLLOUT', 'STEP', 'VERSION'];
const HOST_FOLDER = 'src/dialects/kubeadm/host/scripts/';
const HOST_FILES = SCRIPTS.map(({ path }) => path)
  .filter((path) => path.startsWith(HOST_FOLDER))
  .map((path) => path.slice(HOST_FOLDER.length));
/** The scripts that are run directly. The other files are only parts of scripts. */
const HOST_SCRIPTS = HOST_FILES.filter((name) => !isPart(name));

test('a shell can read every script', () => {
  expect(SCRIPTS.length).toBeGreaterThan(10);
  for (const { path } of SCRIPTS.filter((file) => !file.text.includes('bash')))
    execFileSync('sh', ['-n', path]);
});

test('shellcheck finds nothing', (context) => {
  skipWithoutShellcheck(context);
  const paths = SCRIPTS.map(({ path }) => path);
  expect(run(['--severity=warning', ...paths])).toBe('');
  expect(run(paths.filter((path) => path.startsWith('src/')))).toBe('');
  // shellcheck must find this fault.
  expect(run(['--shell=sh', '-'], 'rm $1')).toContain('SC2086');
});

test('parts/ has the scripts that only other scripts use, and no others', () => {
  expect(HOST_SCRIPTS.length).toBeGreaterThan(10);
  const used = new Set(HOST_FILES.flatMap(usedBy));
  expect(HOST_FILES.filter((name) => isPart(name) && !used.has(name))).toEqual([]);
  // `facts.sh` is both a script that is run directly and the first part of the script `probe`.
  expect(HOST_SCRIPTS.filter((name) => used.has(name))).toEqual(['facts.sh']);
  // Only a script that is run directly gets values.
  expect(HOST_FILES.filter((name) => isPart(name) && inputsOf(name).length > 0)).toEqual([]);
});

test.each(HOST_FILES)('%s prints values with printf', (name) => {
  // The `echo` of dash turns the two characters `\n` into a line break. A value could therefore add lines, and each
  // line is a fact.
  const wrong = scriptFile(name)
    .split('\n')
    .filter((line) => /\becho [^'|;]*\$/.test(line.replace(/#.*/, '')));
  expect(wrong).toEqual([]);
});

test.for(HOST_SCRIPTS)('%s needs exactly the values that its header declares', (name, context) => {
  skipWithoutShellcheck(context);
  const inputs = inputsOf(name);
  const values = inputs.map((input) => `${input.name}=${quoted(input.example)}\n`).join('');
  const options = [
    '--shell=sh',
    '--enable=check-unassigned-uppercase',
    '--exclude=SC2030,SC2031',
    '-',
  ];
  const found = run(options, `${values}${wholeScript(name)}`).split('\n');
  // A script may ignore some functions of the files that it includes, and some of the values that every step gets. It
  // must use all its other values.
  const needed = inputs.filter((input) => !STEP_VALUES.includes(input.name));
  const wrong = found.filter(
    (line) =>
      line !== '' &&
      (!line.includes('[SC2034]') || needed.some((input) => line.includes(`: ${input.name} `))),
  );
  expect(wrong).toEqual([]);
});

function isPart(name: string): boolean {
  return name.startsWith('parts/');
}

function skipWithoutShellcheck(context: TestContext): void {
  context.skip(
    !existsSync(SHELLCHECK),
    `no ${SHELLCHECK}: .ci/run unpacks Debian's package shellcheck there`,
  );
}

function run(args: readonly string[], input = ''): string {
  try {
    return execFileSync(SHELLCHECK, ['--format=gcc', ...args], { input, encoding: 'utf8' });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

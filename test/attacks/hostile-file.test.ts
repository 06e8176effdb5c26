/** Tests that a check of a foreign file cannot control the terminal, and cannot keep the machine busy. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { buildPlan, buildUpdate } from '../support/builders/plans.ts';
import { RefitProcess, runRefit, runRefitProcess } from '../testenv/refit-process.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-hostile-'));
});
afterAll(async () => await rm(directory, { recursive: true }));

async function file(text: string): Promise<string> {
  const path = join(directory, 'plan.yaml');
  await writeFile(path, text);
  return path;
}

function planWith(nodes: readonly string[]): string {
  const discovery = { static: { nodes: ['NODES'] } };
  const plan = stringify(
    buildPlan({ commands: [{ k0supdate: buildUpdate({ targets: { workers: { discovery } } }) }] }),
  );
  return plan.replace(/^( *- )NODES$/m, (_, start: string) =>
    nodes.map((name) => start + name).join('\n'),
  );
}

/**
 * Escape sequences that clear the screen, set the title of the window and hide text. One sequence begins with a C1
 * character. The last character reverses the direction of the text.
 */
const STEERING = '\u001b[2J\u001b]0;owned\u0007\u001b[8m\u009b31m\u202e';
const RAW = /[^\P{Cc}\n]|\p{Bidi_Control}/u;

test.each([
  ['is printed', buildPlan({ id: `id${STEERING}` }), 0],
  [
    'is refused',
    buildPlan({ commands: [{ k0supdate: buildUpdate({ version: `x${STEERING}` }) }] }),
    2,
  ],
])('terminal escapes in a plan that %s: none reaches the terminal', async (_name, plan, code) => {
  const path = await file(JSON.stringify(plan));
  for (const args of [
    ['validate', path],
    ['preview', '-f', path, '--kubeconfig', `/nowhere${STEERING}`],
  ]) {
    const ended = await runRefitProcess(...args);
    expect(ended.code).toBe(args[0] === 'validate' ? code : 2);
    const text = [...ended.stdout, ...ended.stderr].join('\n');
    expect(text).not.toMatch(RAW);
    expect(text).toContain('\uFFFD');
  }
});

const BOMB = [
  'a: &a [x,x,x,x,x,x,x,x,x]',
  ...'bcdefgh'
    .split('')
    .map((at, i) => `${at}: &${at} [${Array(9).fill(`*${'abcdefg'[i]}`).join(',')}]`),
].join('\n');

test.each([
  ['aliases that unfold to millions', BOMB, 'its aliases repeat too much; write the values out'],
  ['brackets without an end', '['.repeat(10_000), 'it is nested too deeply'],
])('%s: the file is to blame, not Refit', async (_name, text, why) => {
  const path = await file(text);
  for (const [args, code] of [
    [['validate', path], 'REFIT_FILE'],
    [['kubeadm', 'plan', '-m', path], 'REFIT_FILE'],
    [['status', '--kubeconfig', path], 'REFIT_KUBECONFIG'],
  ] as const) {
    const { code: exit, stderr } = await runRefit(...args);
    expect(exit).toBe(2);
    expect(stderr.join('\n')).toMatch(new RegExp(`^${code}: .*${why}`));
  }
});

test('a million nodes, and a device without an end: refused at their size', async () => {
  const million = await file(
    planWith(Array.from({ length: 1_000_000 }, (_, index) => `w${index}`)),
  );
  for (const path of [million, '/dev/zero']) {
    const { code, stderr } = await runRefitProcess('validate', path);
    expect(code).toBe(2);
    expect(stderr.join('\n')).toContain('the file is larger than 3 MiB');
  }
});

test('as many nodes and keys as fit are checked in linear time', async () => {
  const nodes = Array.from({ length: 100_000 }, (_, index) => `w${index}`);
  expect((await runRefitProcess('validate', await file(planWith(nodes)))).code).toBe(0);
  const keys = nodes.map((name) => `${name}: 1\n`).join('');
  expect((await runRefitProcess('validate', await file(keys))).stderr.join('')).toContain(
    'holds an object without kind',
  );
});

test('SIGTERM ends it while it computes', async () => {
  const pipe = join(directory, 'pipe.yaml');
  await promisify(execFile)('mkfifo', [pipe]);
  await using refit = new RefitProcess('validate', pipe);
  // Resolves when the process has read the whole text, or nearly the whole text.
  await writeFile(pipe, planWith(Array.from({ length: 100_000 }, (_, index) => `w${index}`)));
  expect(await refit.stop('SIGTERM')).toBe(null);
});

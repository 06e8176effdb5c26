/** Tests that the built command needs no packages: every subcommand loads without any, the agent with its flags. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AGENT_HELP } from '../../src/agent/options.ts';
import { VERSION } from '../../src/cli/version.ts';
import { EXIT } from '../../src/util/errors.ts';
import { AGENT_FLAGS, buildRefit } from './refit.ts';

let directory = '';
let command = '';

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'refit-build-'));
  command = await buildRefit(directory);
});

afterAll(() => rmSync(directory, { recursive: true }));

test('it says its version', () => {
  expect(execFileSync(process.execPath, [command, 'version'], { encoding: 'utf8' })).toBe(`refit ${VERSION}\n`);
});

test('an agent starts with the flags that keep it small', () => {
  const args = [...AGENT_FLAGS, command, 'agent', '--help'];
  expect(execFileSync(process.execPath, args, { encoding: 'utf8' })).toBe(AGENT_HELP);
});

test.each([
  ['controller', ['--kubeconfig', 'missing'], /^REFIT_KUBECONFIG/],
  ['agent', ['--kubeconfig', 'missing'], /^REFIT_KUBECONFIG/],
  ['status', ['--kubeconfig', 'missing'], /^REFIT_KUBECONFIG/],
  ['validate', ['missing'], /^REFIT_FILE/],
])('%s comes as far as its first file', (subcommand, args, line) => {
  const { status, stderr } = spawnSync(process.execPath, [command, subcommand, ...args], {
    cwd: directory,
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([EXIT.usage, expect.stringMatching(line)]);
});

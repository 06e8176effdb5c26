/** Tests that Node runs Refit from its source, as in `npm start`; all other tests may run the built file. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { AGENT_HELP } from '../src/agent/flags.ts';
import { VERSION } from '../src/cli/version.ts';
import { REFIT_SOURCE } from './refit.ts';

test.each([
  ['version', [], `refit ${VERSION}\n`],
  ['agent', ['--help'], AGENT_HELP],
])('%s', (subcommand, args, output) => {
  expect(
    execFileSync(process.execPath, [REFIT_SOURCE, subcommand, ...args], { encoding: 'utf8' }),
  ).toBe(output);
});

/** Shows what is said of a plan file: that it can be carried out, or everything that is wrong with it, in one line. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { buildPlan, buildUpdate } from '../../test/builders/plans.ts';
import type { RefitError } from '../util/errors.ts';
import { validate } from './validate.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-validate-'));
});
afterAll(async () => await rm(directory, { recursive: true }));

async function file(text: string): Promise<string> {
  const path = join(directory, 'plan.yaml');
  await writeFile(path, text);
  return path;
}

async function lineOf(path: string): Promise<string> {
  const error: unknown = await validate(path, () => undefined).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'REFIT_FILE', exitCode: 2 });
  return (error as RefitError).line;
}

test.each([
  [1, '1 command'],
  [2, '2 commands'],
])('a plan with %d', async (count, words) => {
  const commands = Array.from({ length: count }, () => ({ k0supdate: buildUpdate() }));
  const path = await file(stringify(buildPlan({ commands })));
  let told = '';
  expect(
    await validate(path, (text) => {
      told += text;
    }),
  ).toBe(0);
  expect(told).toBe(`${path}: Plan autopilot (id1) with ${words} can be carried out\n`);
});

test('two problems: both, each with field, what was found and what would be right', async () => {
  const path = await file(
    stringify(buildPlan({ id: '', commands: [{ k0supdate: buildUpdate({ version: 'latest' }) }] })),
  );
  expect(await lineOf(path)).toBe(
    `REFIT_FILE: ${path}: spec.id must name this run, such as "2026-11-20"; found ""; ` +
      'spec.commands[0].k0supdate.version must be a version such as "v1.36.3+k0s.0"; found "latest" ' +
      '(check the path and what the file holds)',
  );
});

test.each([
  [
    'a kubeconfig',
    'apiVersion: v1\nkind: Config\n',
    'holds a Config of v1, expected a Plan of autopilot.k0sproject.io/v1beta2',
  ],
  ['nothing', '', 'is empty, expected one Plan'],
  ['no YAML', 'a: [\n', 'is not YAML: Flow sequence in block collection'],
  ['something else', '- 1\n', 'holds a list, expected a Plan'],
])('%s', async (_name, text, words) => {
  expect(await lineOf(await file(text))).toContain(`plan.yaml: ${words}`);
});

test('no file at all', async () => {
  expect(await lineOf(join(directory, 'none.yaml'))).toContain(`cannot read ${directory}/none.yaml: ENOENT`);
  expect(await lineOf(directory)).toContain(`cannot read ${directory}: EISDIR`);
});

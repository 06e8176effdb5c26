/** Shows that `refit validate` judges each of several files, whatever is wrong with the others. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { buildPlan } from '../../test/support/builders/plans.ts';
import { validate } from '../../test/support/builders/validation.ts';
import type { RefitError } from '../util/errors.ts';

test('a file of a folder that is not YAML does not hide the problems of the other files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-validate-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  await writeFile(join(folder, 'a.yaml'), 'a: [\n');
  await writeFile(join(folder, 'b.yaml'), stringify(buildPlan({ commands: [] })));
  const error: unknown = await validate([folder], () => undefined).catch(
    (thrown: unknown) => thrown,
  );
  expect((error as RefitError).text).toMatch(
    /a\.yaml: is not YAML: .*\n.*b\.yaml: spec\.commands\b/,
  );
});

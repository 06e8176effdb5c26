/** Tests that `refit validate` names every wrong field of the windows and blackouts of a policy, each in its own line. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { validate } from '../../test/support/builders/validation.ts';
import { RefitError } from '../util/errors.ts';

/** Returns the lines of several problems, without the name of the file. */
async function problemsIn(value: object): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'refit-validate-times-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const path = join(folder, 'times.yaml');
  await writeFile(path, stringify(value));
  const error = await validate([path], () => {}).catch((thrown: unknown) => thrown);
  if (!(error instanceof RefitError)) throw new Error('found no problem', { cause: error });
  // The first line contains only the number of problems.
  const [, ...lines] = error.text.split('\n');
  return lines.map((line) => line.replace(`${path}: `, '').trim());
}

const POLICY = {
  apiVersion: 'upgrade.refit.dev/v1alpha1',
  kind: 'UpgradePolicy',
  metadata: { name: 'p' },
};

test.each<[string, object, readonly string[]]>([
  [
    'a blackout',
    { blackouts: [{ from: '2026-02-30', to: '2026-01-01', timeZone: 'X' }] },
    [
      'UpgradePolicy p: spec.blackouts[0].timeZone must be',
      'UpgradePolicy p: spec.blackouts[0].from must be',
    ],
  ],
  [
    'a window with a misspelt field',
    { windows: [{ days: ['fry'], startTime: '25:00', timeZone: 'Mars/X' }] },
    [
      'spec.windows[0].days[0]: is the text "fry"',
      'spec.windows[0].start: is missing',
      'spec.windows[0].length: is missing',
      'spec.windows[0]: has no member startTime',
      'UpgradePolicy p: spec.windows[0].timeZone must be',
    ],
  ],
  [
    'a window with a wrong field of each type',
    { windows: [{ days: ['fry'], start: '25:00', length: '900h', timeZone: 'Mars/X' }] },
    [
      'spec.windows[0].days[0]: is the text "fry"',
      'spec.windows[0].start: "25:00" is not a time of day',
      'UpgradePolicy p: spec.windows[0].length must be',
      'UpgradePolicy p: spec.windows[0].timeZone must be',
    ],
  ],
])('the wrong times of an UpgradePolicy are named: %s', async (_, spec, wanted) => {
  expect(await problemsIn({ ...POLICY, spec })).toEqual(
    wanted.map((start): unknown => expect.stringContaining(start)),
  );
});

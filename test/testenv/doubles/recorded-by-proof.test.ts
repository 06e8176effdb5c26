/**
 * Tests that the doubles of k0s make the writes of the releases that `npm run proof:k0s -- --only recordings` recorded.
 * These releases are built from the source of k0s.
 */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadRecording } from '../../support/doubles/recorded-plan.ts';
import { runRecorded } from '../../support/doubles/recorded-run.ts';

const FOLDER = new URL('../../fixtures/autopilot/recorded/', import.meta.url);
const VERSIONS = readdirSync(FOLDER);
const CONTROLLERS = ['c1', 'c2', 'c3'];
/** The situations, and the state in which each Plan ends. */
const SITUATIONS = {
  '3c3w-concurrent1': 'Completed',
  'wrong-sha': 'ApplyFailed',
  'missing-node': 'IncompleteTargets',
} as const;

test('two releases were recorded, each in every situation', () => {
  expect(VERSIONS).toHaveLength(2);
  for (const version of VERSIONS)
    expect(readdirSync(new URL(`${version}/`, FOLDER))).toEqual(
      [...Object.keys(SITUATIONS), '3w-drain-concurrent3']
        .map((name) => `${name}.jsonl`)
        .toSorted(),
    );
});

test.each(
  VERSIONS.flatMap((version) =>
    Object.entries(SITUATIONS).map(
      ([name, state]) => [`recorded/${version}/${name}`, state] as const,
    ),
  ),
)('%s: the doubles write what k0s wrote, and the Plan ends as %s', async (name, state) => {
  const { leaders } = loadRecording(name);
  const others = CONTROLLERS.filter((each) => !leaders.includes(each));
  await using run = await runRecorded(name, {
    controllers: [...leaders, ...others],
    workers: ['w1', 'w2', 'w3'],
    reluctant: others,
  });
  await run.stage.untilPlan(state);
  await run.untilAsRecorded();
});

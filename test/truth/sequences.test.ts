/** Random sequences of operations, after each of which every surface must be true. */
import { beforeAll, describe, expect, test } from 'vitest';
import { WHOLE } from '../support/whole.ts';
import { PLAYED_LABS } from './labs/all.ts';
import { readTruthPage } from './model-page.ts';
import { PLANTED } from './planted-untruths.ts';
import { type Played, play, printUntruth, sequenceOf, shorten } from './sequence.ts';

/** The further seeds of each lab in a whole run. */
const WHOLE_SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);

describe.each(PLAYED_LABS)('$dialect', (lab) => {
  const seeds = [...new Set([...lab.seeds, ...(WHOLE ? WHOLE_SEEDS : [])])];
  const played = new Map<number, Played>();
  beforeAll(async () => {
    for (const seed of seeds)
      played.set(seed, await play(lab, seed, sequenceOf(lab, seed), PLANTED));
  }, 600_000);

  test.each(seeds)(
    'every surface is true after each operation of seed %i',
    async (seed) => {
      const untruth = played.get(seed)?.untruth;
      if (untruth !== undefined)
        expect.fail(printUntruth(lab, seed, await shorten(lab, seed, untruth)));
    },
    600_000,
  );

  const planted = PLANTED.filter(
    ({ isOfOnePlan, isOfRollBack }) =>
      (isOfOnePlan !== true || lab.hasSeveralPlans !== true) &&
      (isOfRollBack !== true || lab.hasRollBacks === true),
  );
  test.each(planted)('a planted untruth is found: $name', ({ name }) => {
    const found = new Set([...played.values()].flatMap((each) => [...each.found]));
    expect(found).toContain(name);
  });
});

test('docs/internals/truth.md tells how many seeds, operations and renderings npm test plays', () => {
  const lengths = PLAYED_LABS.flatMap((lab) =>
    lab.seeds.map((seed) => sequenceOf(lab, seed).length),
  );
  const operations = lengths.reduce((sum, length) => sum + length, 0);
  // The surfaces are also read when the plan begins and when the world is at rest.
  const renderings = operations + 2 * lengths.length;
  expect(readTruthPage()).toContain(
    `${lengths.length} seeds with ${operations} operations and ${renderings} renderings`,
  );
});

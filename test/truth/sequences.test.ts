/** Random sequences of operations, after each of which every surface must be true. */
import { expect, test } from 'vitest';
import { WHOLE } from '../support/whole.ts';
import { ALL_LABS } from './labs/all.ts';
import { PLANTED } from './planted-untruths.ts';
import { play, printUntruth, sequenceOf, shorten } from './sequence.ts';

/** The further seeds of each lab in a whole run. */
const WHOLE_SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);

test.each(ALL_LABS)(
  'every surface of $dialect is true after each operation, and every planted untruth is found',
  async (lab) => {
    const found = new Set<string>();
    for (const seed of new Set([...lab.seeds, ...(WHOLE ? WHOLE_SEEDS : [])])) {
      const steps = sequenceOf(lab, seed);
      const played = await play(lab, seed, steps, PLANTED);
      if (played.untruth !== undefined)
        expect.fail(printUntruth(lab, seed, await shorten(lab, seed, played.untruth)));
      for (const name of played.found) found.add(name);
    }
    const planted = PLANTED.filter(
      ({ isOfOnePlan, isOfRollBack }) =>
        (isOfOnePlan !== true || lab.hasSeveralPlans !== true) &&
        (isOfRollBack !== true || lab.hasRollBacks === true),
    );
    expect(planted.map(({ name }) => name).filter((name) => !found.has(name))).toEqual([]);
  },
  600_000,
);

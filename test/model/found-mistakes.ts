/** The test that the explorer finds a planted mistake within a few steps, with and without the reduction. */
import { expect, test } from 'vitest';
import { printViolation } from './explorer.ts';
import { counterexample, type Mistake } from './mistakes.ts';
import { mistakeRow } from './safety-page.ts';
import { readPage } from './safety-page-file.ts';
import { World } from './world.ts';

/** The limit is higher than the longest counterexample. A complete run with two nodes takes about fifty steps. */
const A_FEW_STEPS = 40;

/** Returns true if the explorer finds the mistake before it has seen many states. The first tier tests only these. */
export function isFoundSoon({ configuration, breaks }: Mistake): boolean {
  return (
    configuration.versions.length === 1 &&
    !['one-controller-in-motion', 'concurrent-workers'].includes(breaks)
  );
}

export function testMistakes(mistakes: readonly Mistake[]): void {
  test.each(mistakes)('$name: found by $breaks', async (mistake) => {
    const world = new World(mistake.configuration, mistake.parts);
    const violation = await counterexample(mistake, world.model());
    if (!violation) throw new Error('nothing is broken');
    console.log(`${mistake.name}: ${printViolation(violation)}`);
    expect(violation.invariant).toBe(mistake.breaks);
    expect(violation.steps.length).toBeLessThanOrEqual(A_FEW_STEPS);
    expect(readPage()).toContain(mistakeRow(mistake, violation));
    if (!isFoundSoon(mistake)) return;
    // Uses the same world as the reduced search, because the world has already cached what agents and leaders do.
    const whole = await counterexample(mistake, world);
    expect(whole?.invariant).toBe(mistake.breaks);
    // The counterexample of the reduced search may be shorter, because the reduction does not wait for agents that only
    // clean up.
    expect(violation.steps.length).toBeLessThanOrEqual(whole?.steps.length ?? 0);
  });
}

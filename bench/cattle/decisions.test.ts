/**
 * Tests that the number of targets that a decision reads depends on the nodes at work, not on the size of the Plan. The
 * benchmark measures the time of a decision.
 */
import { expect, test } from 'vitest';
import { cattle } from '../../src/dialects/cattle/plan/cattle-dialect.ts';
import { CONFIG, sceneOf } from './decisions.ts';

/** Returns how many targets one decision reads after one Job has changed. */
function readsAt(count: number): number {
  const dialect = cattle(CONFIG);
  let reads = 0;
  const read: typeof dialect.signal.read = (...args) => {
    reads++;
    return dialect.signal.read(...args);
  };
  const scene = sceneOf(count, {
    dialect: { ...dialect, signal: { ...dialect.signal, read } },
  });
  scene.change(0);
  reads = 0;
  scene.decide();
  return reads;
}

test('a Plan of 10,000 nodes reads as many as one of 100', () => {
  const few = readsAt(100);
  expect(few).toBeGreaterThan(0);
  expect([readsAt(1_000), readsAt(10_000)]).toEqual([few, few]);
});

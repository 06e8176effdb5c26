/** How many targets a decision reads follows what is at work, not the size of the Plan. What it costs, the benchmark says. */
import { expect, test } from 'vitest';
import { cattle } from '../../src/dialects/cattle/plan/cattle-dialect.ts';
import { CONFIG, sceneOf } from './decisions.ts';

/** How many targets one decision reads, once a Job has changed. */
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

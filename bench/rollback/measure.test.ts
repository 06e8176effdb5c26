/**
 * Tests that the benchmark of rollbacks works. It upgrades a few nodes and rolls them back, in the same way as the
 * benchmark.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/util/clock.ts';
import { rollbackFindings } from './findings.ts';
import { measureRollback } from './measure.ts';

test('ten workers go forward and back, and the figure is the ratio of both times', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-bench-rollback-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const abort = new AbortController().signal;
  const size = { workers: 10, stepMs: 1 };
  const run = await measureRollback(
    { directory, clock: systemClock, abort, ...size },
    () => undefined,
  );
  expect(run.workers).toBe(10);
  const { figures } = rollbackFindings({ ...run, forwardSeconds: 40, backSeconds: 42 });
  expect(figures).toMatchObject([
    { key: 'rollback.wallRatioToForward', value: 1.05, goal: { bound: 'most', limit: 1.1 } },
  ]);
  for (const { key, value } of rollbackFindings(run).figures) expect(value, key).toBeGreaterThan(0);
});

/** Tests that the benchmark of Machines works. It updates a few Machines in the same way as the benchmark. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/util/clock.ts';
import { machineFindings } from './findings.ts';
import { measureMachines } from './measure.ts';

test('the benchmark updates twenty Machines in place, and every figure is above zero', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-bench-capi-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const abort = new AbortController().signal;
  const size = { machines: 20, concurrent: 20, stepMs: 1 };
  const run = await measureMachines(
    { directory, clock: systemClock, abort, ...size },
    () => undefined,
  );
  expect(run.machines).toBe(20);
  expect(run.calls).toBeGreaterThanOrEqual(3 * run.machines);
  const { figures } = machineFindings(run);
  for (const { key, value } of figures) expect(value, key).toBeGreaterThan(0);
});

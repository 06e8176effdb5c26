/**
 * Tests that the demonstrations of `npm start` that stop with a failure exit with 1, and that their last lines name the
 * cause.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../../tools/controlplane/run.ts';

const START = join(import.meta.dirname, '..', '..', 'sandbox', 'start.ts');

test('--canary: a real health check stops the plan in its first wave', async () => {
  const { ok, stdout, stderr } = await run(process.execPath, [START, '--canary']);
  expect(ok, stdout + stderr).toBe(false);
  const last = stdout.trimEnd().split('\n').slice(-5);
  expect(last[0]).toBe('');
  const fault = 'error-rate of UpgradePolicy canary fails: the value is 0.1, above max 0.05';
  expect(last[1]).toMatch(/^Wave 1 stopped at worker\d: the health check /);
  expect(last[1]).toContain(fault);
  expect(last[2]).toMatch(/^3 nodes untouched: worker\d, worker\d, worker\d\.$/);
  expect(stdout).toMatch(/^3 nodes now run v1\.36\.3\+k0s\.0: /m);
  expect(stdout.indexOf('The cluster is removed')).toBeLessThan(stdout.indexOf('now run'));
  expect(stdout).toContain('With --keep it keeps running');
});

test('--bad-release: the agent brings the old version back, and no other node is touched', async () => {
  const { ok, stdout, stderr } = await run(process.execPath, [START, '--bad-release']);
  expect(ok, stdout + stderr).toBe(false);
  expect(stdout).toContain('controller1 failed (its previous version runs again)');
  expect(stdout).toMatch(/^8 nodes now run v1\.36\.3\+k0s\.0: /m);
});

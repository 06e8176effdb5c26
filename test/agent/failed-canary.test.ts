/**
 * Tests what a new user reads and does after `npm start -- --canary --keep` has failed: the commands name the failed
 * health check and the two ways to go on, and the advised roll-back takes the upgraded nodes back.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { run } from '../../tools/controlplane/run.ts';

const START = join(import.meta.dirname, '..', '..', 'sandbox', 'start.ts');
const PATIENCE = { timeout: 120_000, interval: 100 };
const FAULT = 'error-rate of UpgradePolicy canary fails: the value is 0.1, above max 0.05';

async function failedCanary() {
  const child = spawn(process.execPath, [START, '--canary', '--keep'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'close');
  });
  let said = '';
  child.stdout.on('data', (text: Buffer) => {
    said += text.toString();
  });
  await vi.waitFor(() => expect(said).toMatch(/from elsewhere: kill \d+\n/), PATIENCE);
  const [, kubeconfig = ''] = /export KUBECONFIG=(\S+)/.exec(said) ?? [];
  const [, path = ''] = /export PATH=(\S+):\$PATH/.exec(said) ?? [];
  const refit = async (...args: readonly string[]) =>
    await run(join(path, 'refit'), args, { environment: { KUBECONFIG: kubeconfig } });
  return { said, refit };
}

test('after a failed health check each command names the check and both ways to go on, and the advised roll-back takes the nodes back', async () => {
  const { said, refit } = await failedCanary();
  const [, failed = ''] = /Wave 1 stopped at (worker\d)/.exec(said) ?? [];
  for (const args of [['status'], ['why'], ['why', failed]]) {
    const { stdout } = await refit(...args);
    expect(stdout, args.join(' ')).not.toContain('Nothing to fix');
    expect(stdout, args.join(' ')).toContain(FAULT);
    expect(stdout, args.join(' ')).toContain('refit rollback autopilot --reason TEXT');
    expect(stdout, args.join(' ')).toContain(`refit retry ${failed}`);
    const words = stdout.replaceAll(/\s+/g, ' ');
    expect(words, args.join(' ')).toContain(
      'No node goes back while the health check error-rate fails. If only the release makes it fail, run this as soon as the plan that goes back waits for it: refit accept autopilot --check error-rate.',
    );
  }
  expect((await refit('history')).stdout).toContain(`${failed}: the health check ${FAULT}`);
  expect((await refit('status', '-o', 'wide')).stdout).toContain('way back open');

  const trial = await refit('rollback', 'autopilot', '--reason', 'bad', '--dry-run=client');
  expect(trial.stdout).toMatch(/is taken from the file that each host keeps, with the sha256 \w+/);
  expect(trial.stdout).toContain('refit accept autopilot --check error-rate');
  const back = await refit('rollback', 'autopilot', '--reason', 'bad', '--yes');
  expect(back.ok, back.stderr).toBe(true);
  // The release makes the check fail until the nodes have left it, so the command advises to accept the failure.
  await vi.waitFor(async () => {
    const accepted = await refit('accept', 'autopilot', '--check', 'error-rate');
    expect(accepted.ok, accepted.stderr).toBe(true);
  }, PATIENCE);
  expect((await refit('status', '-w')).stdout).toContain('Plan autopilot is done');
  const wide = (await refit('status', '-o', 'wide')).stdout;
  for (const name of ['controller1', 'controller2', 'controller3', failed])
    expect(wide).toMatch(new RegExp(`${name} +done .* v1\\.36\\.3\\+k0s\\.0 `));
});

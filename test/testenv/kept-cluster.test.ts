/**
 * Tests the instructions that `npm start -- --keep` prints: kubectl and refit work on the cluster, and nothing remains
 * after it is stopped.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { kubectl } from '../../tools/controlplane/kubectl.ts';
import { run } from '../../tools/controlplane/run.ts';
import { controlPlane } from './control-plane.ts';

const START = join(import.meta.dirname, '..', '..', 'sandbox', 'start.ts');
const PATIENCE = { timeout: 120_000, interval: 100 };

test('a kept cluster is there for kubectl and refit, advice is given only then, and a signal removes everything', async () => {
  const child = spawn(process.execPath, [START, '--fail', 'worker2', '--keep'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    let said = '';
    child.stdout.on('data', (text: Buffer) => {
      said += text.toString();
    });
    await vi.waitFor(() => expect(said).toMatch(/from elsewhere: kill \d+\n/), PATIENCE);
    expect(said).toContain('run: refit retry worker2');
    const [, kubeconfig = ''] = /export KUBECONFIG=(\S+)/.exec(said) ?? [];
    const [, path = ''] = /export PATH=(\S+):\$PATH/.exec(said) ?? [];
    const nodes = await kubectl(controlPlane().kubectl, kubeconfig, ['get', 'nodes', '-o', 'name']);
    expect(nodes.stdout).toContain('node/worker2');
    const why = await run(join(path, 'refit'), ['why', 'worker2'], {
      environment: { KUBECONFIG: kubeconfig },
    });
    expect(why.stdout).toContain('refit retry worker2');
    const [, repair = ''] = /^ {2}rm (\S+) && refit retry worker2 /m.exec(said) ?? [];
    await rm(repair);
    const refit = async (...args: readonly string[]) =>
      await run(join(path, 'refit'), args, { environment: { KUBECONFIG: kubeconfig } });
    expect((await refit('retry', 'worker2')).ok).toBe(true);
    expect((await refit('status', '-w')).stdout).toContain('Plan autopilot is done');
    const [, plans = ''] = /^ {2}cd (\S+)/m.exec(said) ?? [];
    for (const file of ['plan.yaml', 'plan-back.yaml', 'plan.yaml']) {
      expect(said).toContain(`  kubectl replace --force -f ${file} `);
      const args = ['replace', '--force', '-f', join(plans, file)];
      await kubectl(controlPlane().kubectl, kubeconfig, args);
      expect((await refit('status', '-w')).stdout, file).toContain('Plan autopilot is done');
    }
    const names = (await refit('history')).stdout.match(/plan\.yaml@[^)]+/g) ?? [];
    expect(names).toHaveLength(2);
    const goBack = async (name: string) =>
      await refit('rollback', '--run', name, '--reason', 'trial', '--dry-run', 'client');
    const unclear = await goBack('plan.yaml');
    expect(unclear.stderr).toContain(`choose one of them with --run: ${names.join(', ')}`);
    expect((await goBack(names[0] ?? '')).stdout).toContain('Run plan.yaml goes back');
    const [, pid = ''] = /kill (\d+)\n/.exec(said) ?? [];
    expect(Number(pid)).toBe(child.pid);
    process.kill(Number(pid), 'SIGTERM');
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(existsSync(kubeconfig)).toBe(false);
  } finally {
    child.kill('SIGKILL');
  }
});

test('without --keep nobody is told what to do with a cluster that is gone', async () => {
  // controller1 is the first node of the plan, so this test needs no upgrade of the other nodes.
  const { ok, stdout } = await run(process.execPath, [START, '--fail', 'controller1']);
  expect(ok).toBe(false);
  expect(stdout).toContain('controller1 failed: ');
  expect(stdout).not.toContain('refit retry');
  const summary = stdout.split('\n').filter((line) => !/^\d{4}-\d\d-\d\dT/.test(line));
  expect(summary.filter((line) => line.length > 80)).toEqual([]);
});

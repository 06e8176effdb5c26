/**
 * Tests pause, resume, abort and retry of an upgrade over SSH on a real API server. The documented operator runs these
 * commands while hosts work.
 */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { CORDON_ANNOTATION } from '../../src/drain/cordon-marks.ts';
import { nodes } from '../../src/kube/resources.ts';
import { cutOffWithout, holdAt, isHeld, release, textOf } from '../support/kubeadm/hooks.ts';
import {
  FROM,
  labelledNodes,
  openScene,
  type Run,
  type Scene,
  TO,
} from '../support/kubeadm/suite.ts';
import { kubeconfigFor, kubectlAs } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const PLAN = `ConfigMap kube-system/refit-kubeadm \\(${TO}\\)`;

let scene: Scene;
let manifest = '';
let run: Run;

beforeAll(async () => {
  scene = await openScene(startJavascriptServer);
  manifest = await scene.cluster.manifest(TO);
});
afterAll(async () => await scene[Symbol.asyncDispose]());

function apply(): Run {
  return scene.refit('apply', '--yes', '-m', manifest, '--lease-duration', '5s');
}

async function told(
  ...args: readonly string[]
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await runRefit(
    ...args,
    '--kubeconfig',
    await kubeconfigFor('operator'),
  );
  return { code, stdout: stdout.map((line) => `${line}\n`).join(''), stderr: stderr.join('\n') };
}

async function versionsOf(...names: readonly string[]): Promise<(string | undefined)[]> {
  const found = await Promise.all(
    names.map(async (name) => await scene.cluster.client.get(nodes, name)),
  );
  return found.map(({ status }) => status?.nodeInfo?.kubeletVersion);
}

test('retry refuses a failed host and says what to do', async () => {
  await cutOffWithout(scene.cluster.host('cp1'), 'kube-apiserver');
  expect(await apply().ended).toBe(1);
  // The run has ended because a host failed. No node has its label any more, so KubeOne may start.
  expect(await labelledNodes(scene)).toEqual([]);
  const { code, stderr } = await told('retry', 'cp1');
  expect(code).toBe(1);
  expect(stderr).toMatch(
    new RegExp(
      `refit retry cannot retry cp1 of ${PLAN}: fix the cause, then run .refit kubeadm apply. again`,
    ),
  );
});

test('after a pause only the current host finishes, refit why says how to resume, and resume continues', async () => {
  const cp1 = scene.cluster.host('cp1');
  const cp2 = scene.cluster.host('cp2');
  await holdAt(cp1, 'before', textOf('kubelet'));
  run = apply();
  await isHeld(cp1, run);
  const paused = await told('pause');
  expect(paused).toMatchObject({ code: 0, stderr: '' });
  expect(paused.stdout).toMatch(
    new RegExp(`^${PLAN} is paused\\.\nIn progress, will finish: cp1 `),
  );
  // The next run finishes the current host as well.
  run.child.kill('SIGKILL');
  await run.ended;
  expect(await labelledNodes(scene)).toEqual(['cp1', 'cp2', 'w1', 'w2']);
  run = apply();
  await release(cp1);
  await vi.waitFor(async () => {
    const { stdout } = await told('why');
    expect(stdout).toMatch(new RegExp(`^${PLAN}  running 1/4 for .*, paused  `));
    expect(stdout).toContain('the plan is paused: nothing new starts until it is resumed');
    expect(stdout).toContain(
      '\n  ends    when the plan is resumed (refit resume, or refit resume --plan NAME if there are several plans)\n',
    );
  }, PATIENCE);
  await expect(access(join(cp2.root, 'var/lib/refit/kubeadm.journal'))).rejects.toThrow('ENOENT');

  await holdAt(cp2, 'before', textOf('kubelet'));
  const resumed = await told('resume');
  expect(resumed).toMatchObject({ code: 0, stderr: '' });
  expect(resumed.stdout).toMatch(new RegExp(`^${PLAN} continues\\.\nNext: cp2\\.`));
  await isHeld(cp2, run);
});

test('after an abort the current host finishes and the run ends, and the next run upgrades the other hosts', async () => {
  const aborted = await told('abort', '--reason', 'wrong release');
  expect(aborted).toMatchObject({ code: 0, stderr: '' });
  expect(aborted.stdout).toMatch(
    new RegExp(`^${PLAN} is aborted: wrong release\\.\nIn progress, will finish: cp2 `),
  );
  const shown = scene.refit('plan', '-m', manifest);
  expect([await shown.ended, shown.stdout]).toEqual([
    0,
    expect.stringContaining(
      `An upgrade to ${TO} was aborted: wrong release. The next run finishes the hosts that `,
    ),
  ]);
  await release(scene.cluster.host('cp2'));
  expect(await run.ended).toBe(1);
  expect(run.stdout).toMatch(/has failed: the plan was aborted: wrong release\n$/);
  expect(await labelledNodes(scene)).toEqual([]);
  expect(await versionsOf('cp1', 'cp2', 'w1', 'w2')).toEqual([TO, TO, FROM, FROM]);
  expect((await told('why')).stdout).toMatch(
    / why {5}the plan was aborted: wrong release\n {2}to do {3}Aborted\. To start again: run `refit kubeadm apply` again: it continues where it stopped\.\n$/,
  );
  expect((await told('retry', 'w1')).stderr).toContain(
    'was aborted, so no node of it can be retried; to start again: run `refit kubeadm apply`',
  );

  // Annotates the node as if an earlier run had cordoned it and `kubectl uncordon` had left the annotation. Then a
  // person cordons the node.
  await kubectlAs('admin', [
    'annotate',
    'node',
    'w1',
    `${CORDON_ANNOTATION}=earlier/2026-11-20T08:00:00Z/ConfigMap`,
  ]);
  await kubectlAs('admin', ['cordon', 'w1']);
  const again = apply();
  expect([await again.ended, again.stderr]).toEqual([0, '']);
  expect(await versionsOf('w1', 'w2')).toEqual([TO, TO]);
  const left = await Promise.all(
    ['w1', 'w2'].map(async (name) => await scene.cluster.client.get(nodes, name)),
  );
  expect(left.map(({ spec }) => spec?.unschedulable)).toEqual([true, undefined]);
});

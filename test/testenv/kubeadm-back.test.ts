/**
 * Tests that a whole cluster returns to its previous patch version, with the system's ssh client and on a real API
 * server.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { logOf } from '../../sandbox/sshd/stand-in-host.ts';
import { reportOn } from '../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { PLACE, readRecord } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import { configMaps, nodes } from '../../src/kube/resources.ts';
import { FROM, openScene, type Scene, TO, versions } from '../support/kubeadm/suite.ts';
import { HOSTS } from './kubeadm-hosts.ts';

let scene: Scene;
let manifest = '';
beforeAll(async () => {
  scene = await openScene(startJavascriptServer, { offers: [FROM, TO] });
  const upgrade = scene.refit('apply', '--yes', '-m', await scene.cluster.manifest(TO));
  expect([await upgrade.ended, upgrade.stderr]).toEqual([0, '']);
  manifest = await scene.cluster.manifest(FROM);
});
afterAll(async () => await scene[Symbol.asyncDispose]());

test('an older patch is refused without --back', async () => {
  const run = scene.refit('plan', '-m', manifest);
  expect(await run.ended).toBe(1);
  expect(run.stderr).toContain(
    `R12: API servers are at ${TO}, and ${FROM} is older; \`refit kubeadm apply --back\` allows this`,
  );
});

test('the plan has the workers first, and says what is lost', async () => {
  const run = scene.refit('plan', '--back', '-m', manifest);
  expect([await run.ended, run.stderr]).toEqual([0, '']);
  const names = [...run.stdout.matchAll(/^(\w+) +(?:worker|leader|follower) .*→ v1\.36\.2/gm)];
  expect(names.map(([, name]) => name)).toEqual(['w1', 'w2', 'cp1', 'cp2']);
  expect(run.stdout).toContain('Lost: what the newer patch corrected');
});

test('every host goes back, the control plane after all workers, and then nothing is left to do', async () => {
  const run = scene.refit('apply', '--back', '--yes', '-m', manifest);
  expect([await run.ended, run.stderr]).toEqual([0, '']);
  expect(await versions(scene)).toEqual(HOSTS.map((name) => [name, FROM]));
  const host = (name: string) => scene.cluster.host(name);
  expect((await logOf(host('cp1'), 'kubeadm')).at(-1)).toBe(`upgrade apply --yes ${FROM}`);
  expect((await logOf(host('w1'), 'kubelet')).at(-1)).toBe(`started ${FROM}`);
  const { client } = scene.cluster;
  const { recorded } = readRecord(await client.get(configMaps, PLACE.name, PLACE));
  const [workers] = recorded?.stages ?? [];
  const ended = workers?.targets.map(({ since }) => Date.parse(since)) ?? [];
  const attempt = reportOn(await client.get(nodes, 'cp1'))?.attempt ?? '';
  expect(workers?.targets.map(({ name, state }) => `${name} ${state}`)).toEqual([
    'w1 done',
    'w2 done',
  ]);
  expect(Date.parse(attempt)).toBeGreaterThanOrEqual(Math.max(...ended));
  const again = scene.refit('apply', '--back', '-m', manifest);
  expect([await again.ended, again.stdout]).toEqual([
    0,
    expect.stringContaining('Nothing to do.\n'),
  ]);
});

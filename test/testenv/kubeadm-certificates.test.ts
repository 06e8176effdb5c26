/** Tests that `refit kubeadm` renews certificates of a cluster that nobody upgrades, with real ssh and a real API server. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { COMPONENTS, logOf } from '../../sandbox/sshd/stand-in-host.ts';
import { nodes } from '../../src/kube/resources.ts';
import { subjectOf, writeKubeconfig } from '../../tools/controlplane/kubeconfig.ts';
import { endOf, playStaticPods } from '../support/kubeadm/static-pods.ts';
import { FROM, openScene, type Scene } from '../support/kubeadm/suite.ts';
import { controlPlane } from './control-plane.ts';

const DAY = 86_400_000;
const NAMES = ['cp1', 'cp2'];
const ENDING = { notBefore: Date.now() - 345 * DAY, notAfter: Date.now() + 20 * DAY };
const played = new DisposableStack();
let scene: Scene;

beforeAll(async () => {
  scene = await openScene(startJavascriptServer, { offers: [], certificates: ENDING });
  for (const name of NAMES) {
    played.use(playStaticPods(scene.cluster.client, scene.cluster.host(name)));
  }
});
afterAll(async () => {
  played.dispose();
  await scene[Symbol.asyncDispose]();
});

const log = async (name: string, of: 'kubeadm' | 'static-pods') =>
  await logOf(scene.cluster.host(name), of);
const manifest = async (more: object = {}): Promise<string> =>
  await scene.cluster.manifest(FROM, (fields) => Object.assign(fields, more));

test('a plan says which hosts get new certificates and why, and warns that the kubeconfig expires soon', async () => {
  const path = await writeKubeconfig(
    controlPlane(),
    join(controlPlane().directory, 'kubeconfigs/ending.yaml'),
    subjectOf('kubeadm'),
    ENDING,
  );
  const run = scene.refit('plan', '-m', await manifest(), '--kubeconfig', path);
  expect([await run.ended, run.stderr]).toEqual([0, '']);
  expect(run.stdout).toContain(`warning certificate: the client certificate of ${path} ends on 20`);
  for (const name of NAMES) {
    expect(run.stdout).toMatch(
      new RegExp(`^${name} +control plane +${FROM} +kubeadm certs renew$`, 'm'),
    );
    expect(run.stdout).toMatch(
      new RegExp(
        `^${name} restarts its static pods with new certificates: /etc/kubernetes/pki/apiserver.crt ends on 20`,
        'm',
      ),
    );
  }
  expect(await log('cp1', 'kubeadm')).toEqual([]);
});

describe('where kubeadm may not renew them', () => {
  test('a plan warns, and there is nothing to do', async () => {
    const run = scene.refit(
      'plan',
      '-m',
      await manifest({ kubeadm: { certificateRenewal: false } }),
    );
    expect([await run.ended, run.stderr]).toEqual([0, '']);
    expect(run.stdout).toContain(
      'warning certificate: cp1: /etc/kubernetes/pki/apiserver.crt ends on 20',
    );
    expect(run.stdout).toContain('Nothing to do.\n');
  });

  test('by the UpgradeConfiguration of a host, neither', async () => {
    const config = join(scene.cluster.host('cp1').root, 'etc/kubernetes/upgrade.yaml');
    await writeFile(config, 'kind: UpgradeConfiguration\napply:\n  certificateRenewal: false\n');
    const run = scene.refit('plan', '-m', await manifest({ kubeadm: { config } }));
    expect([await run.ended, run.stdout]).toEqual([0, expect.stringContaining('Nothing to do.\n')]);
  });
});

test('a certificate renewal that fails on one host does not start on the next; the same command completes it', async () => {
  const path = await manifest();
  const hook = join(scene.cluster.host('cp1').root, 'hooks/die-without');
  await mkdir(hook, { recursive: true });
  await writeFile(join(hook, 'certs'), '');
  const cutOff = scene.refit('apply', '--yes', '-m', path);
  expect(await cutOff.ended).toBe(1);
  expect(cutOff.stdout).toContain('step certificates failed with exit code');
  expect(await log('cp1', 'kubeadm')).toHaveLength(1);
  expect([await log('cp2', 'kubeadm'), await log('cp1', 'static-pods')]).toEqual([[], []]);

  const run = scene.refit('apply', '--yes', '-m', path);
  expect([await run.ended, run.stderr]).toEqual([0, '']);
  for (const name of NAMES) {
    expect(await log(name, 'static-pods')).toEqual(COMPONENTS);
    expect(await endOf(scene.cluster.host(name).root, 'apiserver')).toBeGreaterThan(
      Date.now() + 300 * DAY,
    );
    expect(run.stdout).toMatch(new RegExp(`^Verified ${name}: .*certificates until 20`, 'm'));
  }
  const { items } = await scene.cluster.client.list(nodes);
  expect(items.filter(({ spec }) => spec?.unschedulable)).toEqual([]);
  expect(await logOf(scene.cluster.host('cp1'), 'kubelet')).toEqual([]);
});

test('then there is nothing to do', async () => {
  const run = scene.refit('apply', '-m', await manifest());
  expect([await run.ended, run.stdout]).toEqual([0, expect.stringContaining('Nothing to do.\n')]);
});

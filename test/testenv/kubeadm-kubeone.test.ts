/**
 * Tests `refit kubeadm plan` with the manifest of KubeOne, over Debian's sshd. Refit reads the names on the hosts
 * themselves, and reaches some hosts through a bastion.
 */
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { ADDRESS } from '../../sandbox/sshd/server.ts';
import { startDebianServer, whyNoSshd } from '../support/kubeadm/debian-server.ts';
import { openScene, type Run, type Scene, TO } from '../support/kubeadm/suite.ts';
import { leftOut } from '../support/left-out.ts';
import { kubeconfigFor } from './control-plane.ts';

const why = whyNoSshd();
if (why === undefined) describe('a manifest of KubeOne', () => suite());
else leftOut('a manifest of KubeOne', why);

function suite(): void {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(startDebianServer);
    for (const { root } of scene.cluster.hosts) {
      await writeFile(
        join(root, 'usr/bin/hostname'),
        '#!/bin/sh\n[ "$*" = -f ] && cat "$REFIT_ROOT/etc/hostname"\n',
      );
      await chmod(join(root, 'usr/bin/hostname'), 0o755);
    }
  });
  afterAll(async () => await scene[Symbol.asyncDispose]());

  const portOf = (name: string): number => scene.cluster.servers.get(name)?.port ?? 0;

  /** Runs `refit kubeadm plan` with a manifest of KubeOne in which every host except w2 is reached through w2. */
  async function plan(change: object): Promise<Run> {
    const path = join(await scene.cluster.manifest(TO), '..', 'kubeone.yaml');
    const all = scene.cluster.hosts.map(({ name, role }) => ({
      role,
      config: {
        publicAddress: ADDRESS,
        sshPort: portOf(name),
        sshPrivateKeyFile: './identity',
        ...(name === 'w2' ? { hostname: name } : { bastion: ADDRESS, bastionPort: portOf('w2') }),
        ...change,
      },
    }));
    const of = (wanted: string): object[] =>
      all.flatMap(({ role, config }) => (role === wanted ? [config] : []));
    const cluster = {
      apiVersion: 'kubeone.k8c.io/v1beta3',
      kind: 'KubeOneCluster',
      name: 'demo',
      versions: { kubernetes: TO.slice(1) },
      controlPlane: { hosts: of('controlPlane') },
      staticWorkers: { hosts: of('worker') },
      addons: { path: './addons' },
    };
    await writeFile(path, stringify(cluster));
    return scene.refit('plan', '-m', path, '--kubeconfig', await kubeconfigFor('kubeadm'));
  }

  test('a plan from a KubeOne manifest reads names on hosts through a bastion and lists what Refit leaves alone', async () => {
    const run = await plan({});
    expect([await run.ended, run.stderr]).toEqual([0, '']);
    expect(run.stdout).toMatch(/^Refit does not touch these parts of \S+kubeone\.yaml: addons\n/);
    const rows = run.stdout.split('\n').map((line) => line.trim().replaceAll(/ {2,}/g, '|'));
    expect(rows).toEqual(
      expect.arrayContaining([
        `cp1|leader|v1.36.2 → ${TO}|kubeadm upgrade apply ${TO}`,
        `cp2|follower|v1.36.2 → ${TO}|kubeadm upgrade node`,
        `w1|worker|v1.36.2 → ${TO}|kubeadm upgrade node`,
        `w2|worker|v1.36.2 → ${TO}|kubeadm upgrade node`,
      ]),
    );
  });

  test('a bastion that does not let us in is named', async () => {
    const run = await plan({
      bastion: ADDRESS,
      bastionPort: portOf('w2'),
      bastionPrivateKeyFile: './cp1/host-key',
    });
    const line =
      /^REFIT_SSH: 3 errors .*\n.*\(127\.0\.0\.1 through 127\.0\.0\.1\): no connection through its bastion: check/;
    expect([await run.ended, run.stderr]).toEqual([3, expect.stringMatching(line)]);
  });
}

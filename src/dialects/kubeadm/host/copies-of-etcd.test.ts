/** Proves which of the copies of etcd's data that kubeadm leaves stay on the host. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { kubeadmBody, stepScript } from './scripts.ts';

/** Upgrades a control-plane host whose kubeadm leaves the copy `made`. Returns the copies after that. */
function copiesAfter(made: string | undefined, before: readonly string[]): string[] {
  const root = mkdtempSync(join(tmpdir(), 'refit-copies-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const copies = join(root, 'etc/kubernetes/tmp');
  for (const folder of [
    'run',
    'bin',
    'etc/kubernetes/manifests',
    'var/lib/refit/staged',
    'var/lib/kubelet',
  ])
    mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'etc/kubernetes/manifests/etcd.yaml'), '');
  // The copies of earlier runs have later times, because the clock of the host was wrong.
  before.forEach((name, index) => {
    mkdirSync(join(copies, name), { recursive: true });
    const later = new Date(Date.now() + (index + 1) * 86_400_000);
    utimesSync(join(copies, name), later, later);
  });
  const work = made === undefined ? ':' : `mkdir -p ${join(copies, made)}`;
  const kubeadm = `#!/bin/sh\n[ "$1" != upgrade ] || ${work}\n`;
  for (const path of ['bin/kubeadm', 'var/lib/refit/staged/kubeadm'])
    writeFileSync(join(root, path), kubeadm, { mode: 0o755 });
  for (const name of ['dpkg-query', 'rpm'])
    writeFileSync(join(root, 'bin', name), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  writeFileSync(join(root, 'bin/kubelet'), '#!/bin/sh\necho Kubernetes v1.36.2\n', { mode: 0o755 });
  const context = { step: 'kubeadm', rollout: 'r', version: 'v1.36.3' } as const;
  const input = stepScript(context, kubeadmBody('node', 'controlPlane', {}));
  const env = { ...process.env, REFIT_ROOT: root, PATH: `${root}/bin:${process.env['PATH']}` };
  const { status, stdout } = spawnSync('sh', ['-s'], { input, env, encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, '']);
  return readdirSync(copies);
}

test('the copy of etcd that this run of kubeadm made stays, even if older copies have later times', () => {
  const before = ['kubeadm-backup-etcd-1', 'kubeadm-backup-etcd-2'];
  expect(copiesAfter('kubeadm-backup-etcd-3', before)).toEqual(['kubeadm-backup-etcd-3']);
});

test('if kubeadm makes no copy of etcd, the newest of the earlier copies stays', () => {
  const before = ['kubeadm-backup-etcd-1', 'kubeadm-backup-etcd-2'];
  expect(copiesAfter(undefined, before)).toEqual(['kubeadm-backup-etcd-2']);
});

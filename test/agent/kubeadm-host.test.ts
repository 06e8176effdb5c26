/**
 * Tests a kubeadm host whose disk is full or forbids programs: what `plan` reports about it, and which error a step
 * reports. Uses real mounts.
 */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { restoreFactsScript } from '../../src/dialects/kubeadm/command/restore-etcd.ts';
import { snapshotScript } from '../../src/dialects/kubeadm/host/etcd.ts';
import { wholeScript } from '../../src/dialects/kubeadm/host/filled-script.ts';
import { parseFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import { detached, probeScript } from '../../src/dialects/kubeadm/host/scripts.ts';
import { parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { run } from '../../tools/controlplane/run.ts';
import { leftOut } from '../support/left-out.ts';

const manifest = parseManifest(
  '{version: v1.36.3, hosts: [{name: cp1, role: controlPlane}], binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}',
  'm.yaml',
);
const [host] = manifest.hosts;
const isRoot = process.getuid?.() === 0;

let root = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-host-'));
  for (const folder of ['run', 'usr/bin', 'var/lib'])
    await mkdir(join(root, folder), { recursive: true });
});
afterAll(async () => await rm(root, { recursive: true }));

/** Runs the script in its own mount namespace, with a small disk at /var/lib. `before` runs there first. */
async function onHost(options: string, before: string, script: string): Promise<string> {
  const file = join(root, 'script.sh');
  await writeFile(file, script);
  const disk = `mount -t tmpfs -o ${options} none "$REFIT_ROOT/var/lib" && ${before} && exec sh ${file}`;
  const environment = { REFIT_ROOT: root, PATH: `${join(root, 'usr/bin')}:${process.env['PATH']}` };
  const { stdout, stderr } = await run('unshare', ['-m', 'sh', '-c', disk], { environment });
  return stdout + stderr;
}

if (host === undefined) throw new Error('the manifest has no host');
if (!isRoot) leftOut('a host', 'only root may mount');
else
  describe('a host', () => {
    const problemsWith = async (options: string): Promise<string[]> =>
      parseFacts(
        await onHost(options, 'true', probeScript(manifest, host, Date.now())),
      ).problems.map(({ severity, message }) => `${severity} ${message}`);

    test('the check of a host finds too little disk space and a mount that runs no programs', async () => {
      const problems = await problemsWith('size=8m,noexec');
      expect(problems).toContain(`hard ${root}/var/lib has 8 MiB free, the upgrade needs 256 MiB`);
      expect(problems).toContain(
        'hard /var/lib is mounted with noexec: staged binaries cannot run there',
      );
    });

    test('with binaries in a folder that cannot be written, as on an image that is never changed', async () => {
      const probe = probeScript(manifest, host, Date.now());
      const lock =
        'mount --bind "$REFIT_ROOT/usr/bin" "$REFIT_ROOT/usr/bin" && mount -o remount,ro,bind "$REFIT_ROOT/usr/bin"';
      await writeFile(join(root, 'usr/bin/kubelet'), '#!/bin/sh\n', { mode: 0o755 });
      const readOnly =
        /^kubelet lies in (.*), which is read-only: move it to a folder that is not, also in what starts it$/;
      const found = async (before: string): Promise<string[]> =>
        parseFacts(await onHost('size=512m', before, probe)).problems.flatMap(
          ({ message }) => readOnly.exec(message)?.[1] ?? [],
        );
      expect(await found(lock)).toEqual([join(root, 'usr/bin')]);
      expect(await found('true')).toEqual([]);
    });

    test('with enough of both', async () => {
      const problems = await problemsWith('size=512m');
      expect(problems.filter((problem) => /MiB|noexec/.test(problem))).toEqual([]);
    });

    describe.each([
      ['in a folder of its own', '/srv/etcd', 'true'],
      ['behind a link', '/var/lib/etcd', 'ln -s "$REFIT_ROOT/srv/etcd" "$REFIT_ROOT/var/lib/etcd"'],
    ])('with the data of etcd %s', (_, folder, link) => {
      const manifests = '"$REFIT_ROOT/etc/kubernetes/manifests"';
      const data = '"$REFIT_ROOT/srv/etcd/member"';
      const before = [
        link,
        `mkdir -p ${data} "$REFIT_ROOT/etc/kubernetes" && head -c 10M /dev/zero >${data}/db`,
        'mount -t tmpfs -o size=8m none "$REFIT_ROOT/etc/kubernetes"',
        `mkdir ${manifests} && echo '    - --data-dir=${folder}' >${manifests}/etcd.yaml`,
      ].join(' && ');

      test('no room for the copy that kubeadm makes of it', async () => {
        const { problems } = parseFacts(
          await onHost('size=512m', before, probeScript(manifest, host, Date.now())),
        );
        const line = /\/etc\/kubernetes has 7 MiB free, the upgrade needs 10 MiB$/;
        expect(problems.map(({ message }) => message)).toContainEqual(expect.stringMatching(line));
      });

      test('no room for a snapshot of it', async () => {
        const said = await onHost('size=1m', before, snapshotScript('v1.36.3', 1));
        expect(said).toMatch(/^\S+ has no room for a snapshot of etcd, 1\d{4} KiB$/m);
      });
    });

    test.each([
      ['too little room', 'size=4m', '/var/lib/etcd has no room for the snapshot\n'],
      ['enough room', 'size=64m', ' cp1=https://10.0.0.1:2380\n'],
    ])('with %s to restore a snapshot of etcd beside its data', async (_, size, end) => {
      const body = Buffer.alloc(5_000_000, 'a');
      await mkdir(join(root, 'srv'), { recursive: true });
      await writeFile(
        join(root, 'srv/snap.db'),
        Buffer.concat([body, createHash('sha256').update(body).digest()]),
      );
      await writeFile(join(root, 'usr/bin/etcdutl'), '#!/bin/sh\n', { mode: 0o755 });
      const flags = [
        'data-dir=/var/lib/etcd',
        'name=cp1',
        'initial-advertise-peer-urls=https://10.0.0.1:2380',
      ];
      await mkdir(join(root, 'etc/kubernetes/manifests'), { recursive: true });
      const yaml = flags.map((flag) => `    - --${flag}\n`).join('');
      await writeFile(join(root, 'etc/kubernetes/manifests/etcd.yaml'), yaml);
      const script = restoreFactsScript({ snapshot: '/srv/snap.db', stamp: 'one' });
      const said = await onHost(size, 'mkdir -p "$REFIT_ROOT/var/lib/etcd"', script);
      expect(said).toMatch(new RegExp(`${end}$`));
    });

    test('with a clock that is off', async () => {
      const late = probeScript(manifest, host, Date.now() + 100_000);
      const { problems } = parseFacts(await onHost('size=1m', 'true', late));
      expect(problems.filter(({ severity }) => severity === 'warn')).toEqual([
        {
          rule: 'clock',
          severity: 'warn',
          message: expect.stringMatching(/^its clock and the one here are -\d+ s apart$/) as string,
        },
      ]);
    });

    test('with a full disk says so, and runs nothing', async () => {
      const fill =
        'mkdir "$REFIT_ROOT/var/lib/refit" && { cat /dev/zero >"$REFIT_ROOT/var/lib/full" 2>/dev/null || true; }';
      const body = `ROLLOUT=r\nSTEP=kubelet\n${wholeScript('parts/step.sh')}note begun\necho it ran\n`;
      const step = detached(body, 5);
      const said = await onHost('size=1m', fill, step);
      expect(said).toContain('No space left on device');
      expect(said).not.toContain('it ran');
    });
  });

/**
 * Tests the scripts that query the members of etcd and move their leader, on three real members with TLS as kubeadm
 * configures it.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  etcdProblems,
  moveLeaderScript,
  nextLeader,
  snapshotScript,
} from '../../src/dialects/kubeadm/host/etcd.ts';
import { etcdAnswers, readFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import type { ManifestHost } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { createAuthority, validFrom } from '../../tools/controlplane/certs.ts';
import { run } from '../../tools/controlplane/run.ts';
import { type EtcdMembers, NAMES, startEtcdMembers } from '../support/kubeadm/etcd-members.ts';

let members: EtcdMembers;
const folderOf = (name: string): string => members.folderOf(name);
const hosts = (): readonly ManifestHost[] => members.hosts;

beforeAll(async () => {
  members = await startEtcdMembers();
});
afterAll(async () => await members[Symbol.asyncDispose]());

test('Refit finds three etcd members healthy and reads their certificates, also in a custom directory', async () => {
  const answers = await etcdAnswers(members.shells, hosts());
  expect([...answers.keys()]).toEqual(NAMES);
  expect(etcdProblems(answers)).toEqual([]);
  const [first] = hosts();
  if (!first) return;
  const { certificates, etcd } = await readFacts(members.shells, first);
  expect(certificates.map(({ file, isAuthority }) => [file, isAuthority])).toEqual([
    ['/etc/kubernetes/pki/etcd/server.crt', false],
    ['/etc/kubernetes/pki/etcd/healthcheck-client.crt', false],
    ['/etc/kubernetes/pki/etcd/ca.crt', true],
  ]);
  expect(etcd).toMatchObject({ alarms: [] });
  const own = await readFacts(members.shells, { name: 'cp2', role: 'controlPlane' });
  expect(own.certificates.map(({ file }) => file)).toContain('/srv/pki/etcd/server.crt');
});

describe('a snapshot', () => {
  const snapshots = (): string => join(folderOf('cp1'), 'var/lib/refit/snapshots');
  const take = async (certificate?: string) => {
    const [host] = hosts();
    if (!host) throw new Error('there is no host');
    return await members.shells.run(host, snapshotScript('v1.36.3', 1, certificate));
  };

  test('an etcd snapshot ends with the hash of its content, and only the last snapshot is kept', async () => {
    const { code, stdout } = await take();
    const [, path = '', hash] = /^(\S+) with SHA-256 (\S+)\n$/.exec(stdout) ?? [];
    expect([code, path]).toEqual([
      0,
      expect.stringMatching(/^\/var\/lib\/refit\/snapshots\/etcd-before-v1\.36\.3-.*\.db$/),
    ]);
    const bytes = await readFile(join(folderOf('cp1'), path));
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(hash);
    expect(createHash('sha256').update(bytes.subarray(0, -32)).digest()).toEqual(
      bytes.subarray(-32),
    );
    await rename(
      join(folderOf('cp1'), path),
      join(snapshots(), 'etcd-before-v1.30.0-20260101T000000Z.db'),
    );
    expect((await take()).code).toBe(0);
    expect(await readdir(snapshots())).toEqual([expect.stringContaining('v1.36.3')]);
  });

  test('an encrypted etcd snapshot opens with the key of its certificate, and no plain file stays', async () => {
    const { certificate, key } = createAuthority({ commonName: 'backups' }, validFrom(Date.now()));
    const { code, stdout } = await take(certificate);
    const [path = ''] = stdout.split(' ');
    expect([code, path]).toEqual([
      0,
      expect.stringMatching(/\/etcd-before-v1\.36\.3-.*\.db\.cms$/),
    ]);
    expect(await readdir(snapshots())).toEqual([basename(path)]);
    const own = join(folderOf('cp1'), 'key.pem');
    await writeFile(own, key, { mode: 0o600 });
    const decrypt = [
      'cms',
      '-decrypt',
      '-inform',
      'DER',
      '-in',
      join(folderOf('cp1'), path),
      '-inkey',
      own,
    ];
    const { stdout: plain } = spawnSync('openssl', decrypt, { maxBuffer: 2 ** 30 });
    expect(createHash('sha256').update(plain.subarray(0, -32)).digest()).toEqual(
      plain.subarray(-32),
    );
    await rm(join(folderOf('cp1'), path));
  });

  test('an etcd snapshot that is cut off is refused, and the folder of snapshots stays as it was', async () => {
    const before = await readdir(snapshots());
    const curl = (await run('sh', ['-c', 'command -v curl'])).stdout.trim();
    const bin = join(folderOf('cp1'), 'usr/bin');
    await mkdir(bin, { recursive: true });
    await writeFile(join(bin, 'curl'), `#!/bin/sh\n${curl} "$@" | head -n 1\n`, { mode: 0o755 });
    const { code, stdout } = await take();
    await rm(bin, { recursive: true });
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^the snapshot of etcd is not whole/),
    ]);
    expect(await readdir(snapshots())).toEqual(before);
  });
});

test('Refit moves the leadership of etcd to another member', async () => {
  const answers = await etcdAnswers(members.shells, hosts());
  const leads = hosts().find(
    ({ name }) => nextLeader(answers.get(name), answers.values()) !== undefined,
  );
  const next = nextLeader(answers.get(leads?.name ?? ''), answers.values());
  if (!leads || next === undefined) throw new Error('nobody leads');
  const { code, stdout } = await members.shells.run(leads, moveLeaderScript(next));
  expect([code, stdout]).toEqual([0, expect.not.stringContaining('"error"')]);
  const asked = async (): Promise<unknown> =>
    (await etcdAnswers(members.shells, [leads])).get(leads.name);
  await expect.poll(asked, { timeout: 60_000, interval: 250 }).toMatchObject({ leader: next });
});

test('a member that has ended is named, with why', async () => {
  await members.stop('cp3');
  const asked = async (): Promise<string[]> =>
    etcdProblems(await etcdAnswers(members.shells, hosts())).map(({ found }) => found);
  const line = /^the member on cp3 does not answer \(curl: .*[Cc]onnect.*\)$/;
  await expect
    .poll(asked, { timeout: 60_000, interval: 250 })
    .toEqual([expect.stringMatching(line)]);
});

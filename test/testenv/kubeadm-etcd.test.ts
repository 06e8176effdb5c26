/** The scripts that ask etcd's members and move their leader, on three real members with TLS as kubeadm makes them. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { etcdProblems, moveLeaderScript, nextLeader, snapshotScript } from '../../src/dialects/kubeadm/etcd.ts';
import type { ManifestHost } from '../../src/dialects/kubeadm/manifest.ts';
import { etcdAnswers, readFacts } from '../../src/dialects/kubeadm/probe.ts';
import type { Shells } from '../../src/dialects/kubeadm/ssh.ts';
import { systemClock } from '../../src/util/clock.ts';
import { ensureComponents } from '../../tools/controlplane/build.ts';
import { createAuthority, issueClient, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';
import { run } from '../../tools/controlplane/run.ts';

interface Member {
  readonly host: ManifestHost;
  readonly client: string;
  readonly peer: string;
}

const NAMES = ['cp1', 'cp2', 'cp3'];
let root = '';
let members: readonly Member[] = [];
const processes = new Map<string, Process>();
const folderOf = (name: string): string => join(root, name);
const hosts = (): ManifestHost[] => members.map(({ host }) => host);

/** Scripts run here, each in the directory of its host. */
const shells: Shells = {
  async run({ name }, script) {
    const environment = { REFIT_ROOT: folderOf(name), PATH: `${folderOf(name)}/usr/bin:${process.env['PATH']}` };
    const { ok, stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
    return { code: ok ? 0 : 1, stdout, stderr };
  },
  [Symbol.asyncDispose]: async () => await Promise.resolve(),
};

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-etcd-'));
  const { etcd } = await ensureComponents(['etcd'], {
    environment: process.env,
    log: () => undefined,
    now: () => systemClock.monotonic(),
  });
  const validity = validFrom(systemClock.now());
  const subject = { commonName: 'etcd-ca' };
  const authority = createAuthority(subject, validity);
  const issuer = { subject, key: authority.key };
  const server = issueServer(issuer, { dns: ['localhost'], addresses: ['127.0.0.1'] }, validity);
  const health = issueClient(issuer, { commonName: 'kube-etcd-healthcheck-client' }, validity);
  const ports = async (): Promise<string> => String(await freePort());
  members = await Promise.all(
    NAMES.map(async (name) => ({
      host: { name, role: 'controlPlane' as const },
      client: `https://127.0.0.1:${await ports()}`,
      peer: `http://127.0.0.1:${await ports()}`,
    })),
  );
  const cluster = members.map(({ host, peer }) => `${host.name}=${peer}`).join(',');
  await Promise.all(
    members.map(async (each) => {
      const folder = folderOf(each.host.name);
      const pki = join(folder, 'etc/kubernetes/pki/etcd');
      for (const path of [pki, join(folder, 'etc/kubernetes/manifests'), join(folder, 'logs'), join(folder, 'pids')])
        await mkdir(path, { recursive: true });
      const files = {
        'ca.crt': authority.certificate,
        'server.crt': server.certificate,
        'server.key': server.key,
        'healthcheck-client.crt': health.certificate,
        'healthcheck-client.key': health.key,
      };
      for (const [file, text] of Object.entries(files)) await writeFile(join(pki, file), text);
      const listen = `--listen-client-urls=${each.client}`;
      const manifest = `spec:\n  containers:\n  - command:\n    - etcd\n    - ${listen},https://10.0.0.1:2379\n    image: r/etcd:3.6.8-0\n`;
      await writeFile(join(folder, 'etc/kubernetes/manifests/etcd.yaml'), manifest);
      const tls = [
        '--client-cert-auth',
        `--trusted-ca-file=${pki}/ca.crt`,
        `--cert-file=${pki}/server.crt`,
        `--key-file=${pki}/server.key`,
        // The gateway is a client, too: kubeadm's certificate for servers is one for clients.
        `--client-cert-file=${pki}/healthcheck-client.crt`,
        `--client-key-file=${pki}/healthcheck-client.key`,
      ];
      const peers = [`--listen-peer-urls=${each.peer}`, `--initial-advertise-peer-urls=${each.peer}`];
      const names = [`--name=${each.host.name}`, `--data-dir=${folder}/data`, `--initial-cluster=${cluster}`];
      const args = [...names, listen, `--advertise-client-urls=${each.client}`, ...peers, ...tls];
      const ready = async (): Promise<boolean> =>
        typeof (await etcdAnswers(shells, [each.host])).get(each.host.name) === 'object';
      processes.set(
        each.host.name,
        await startProcess({ name: 'etcd', command: etcd, args, directory: folder, ready, clock: systemClock }),
      );
    }),
  );
});
afterAll(async () => {
  for (const each of processes.values()) await each.stop();
  await rm(root, { recursive: true, force: true });
});

test('three members are healthy, and their certificates are read without keys', async () => {
  const answers = await etcdAnswers(shells, hosts());
  expect([...answers.keys()]).toEqual(NAMES);
  expect(etcdProblems(answers)).toEqual([]);
  const [first] = hosts();
  if (!first) return;
  const { certificates, etcd } = await readFacts(shells, first);
  expect(certificates.map(({ file, isAuthority }) => [file, isAuthority])).toEqual([
    ['/etc/kubernetes/pki/etcd/server.crt', false],
    ['/etc/kubernetes/pki/etcd/healthcheck-client.crt', false],
    ['/etc/kubernetes/pki/etcd/ca.crt', true],
  ]);
  expect(etcd).toMatchObject({ alarms: [] });
});

describe('a snapshot', () => {
  const snapshots = (): string => join(folderOf('cp1'), 'var/lib/refit/snapshots');
  const take = async () => {
    const [host] = hosts();
    if (!host) throw new Error('there is no host');
    return await shells.run(host, snapshotScript('v1.36.3', 1));
  };

  test('has the hash of its content at its end; the last one is kept', async () => {
    const { code, stdout } = await take();
    const [, path = '', hash] = /^(\S+) with SHA-256 (\S+)\n$/.exec(stdout) ?? [];
    expect([code, path]).toEqual([
      0,
      expect.stringMatching(/^\/var\/lib\/refit\/snapshots\/etcd-before-v1\.36\.3-.*\.db$/),
    ]);
    const bytes = await readFile(join(folderOf('cp1'), path));
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(hash);
    expect(createHash('sha256').update(bytes.subarray(0, -32)).digest()).toEqual(bytes.subarray(-32));
    await rename(join(folderOf('cp1'), path), join(snapshots(), 'etcd-before-v1.30.0-20260101T000000Z.db'));
    expect((await take()).code).toBe(0);
    expect(await readdir(snapshots())).toEqual([expect.stringContaining('v1.36.3')]);
  });

  test('that is cut off is refused, and leaves what was there', async () => {
    const before = await readdir(snapshots());
    const curl = (await run('sh', ['-c', 'command -v curl'])).stdout.trim();
    const bin = join(folderOf('cp1'), 'usr/bin');
    await mkdir(bin, { recursive: true });
    await writeFile(join(bin, 'curl'), `#!/bin/sh\n${curl} "$@" | head -n 1\n`, { mode: 0o755 });
    const { code, stdout } = await take();
    await rm(bin, { recursive: true });
    expect([code, stdout]).toEqual([1, expect.stringMatching(/^the snapshot of etcd is not whole/)]);
    expect(await readdir(snapshots())).toEqual(before);
  });
});

test('the leader moves to another member', async () => {
  const answers = await etcdAnswers(shells, hosts());
  const leads = hosts().find(({ name }) => nextLeader(answers.get(name), answers.values()) !== undefined);
  const next = nextLeader(answers.get(leads?.name ?? ''), answers.values());
  if (!leads || next === undefined) throw new Error('nobody leads');
  const { code, stdout } = await shells.run(leads, moveLeaderScript(next));
  expect([code, stdout]).toEqual([0, expect.not.stringContaining('"error"')]);
  const asked = async (): Promise<unknown> => (await etcdAnswers(shells, [leads])).get(leads.name);
  await expect.poll(asked, { timeout: 60_000 }).toMatchObject({ leader: next });
});

test('a member that has ended is named, with why', async () => {
  await processes.get('cp3')?.stop();
  const asked = async (): Promise<string[]> =>
    etcdProblems(await etcdAnswers(shells, hosts())).map(({ found }) => found);
  const line = /^the member on cp3 does not answer \(curl: .*[Cc]onnect.*\)$/;
  await expect.poll(asked, { timeout: 60_000 }).toEqual([expect.stringMatching(line)]);
});

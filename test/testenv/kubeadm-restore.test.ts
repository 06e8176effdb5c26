/** Tests `refit kubeadm restore-etcd` over Debian's sshd, on three real members of etcd and the real etcdutl. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chown,
  copyFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { REFIT } from '../../sandbox/refit.ts';
import { ADDRESS, makeKey, type SshServer } from '../../sandbox/sshd/server.ts';
import { snapshotScript } from '../../src/dialects/kubeadm/host/etcd.ts';
import { etcdAnswers } from '../../src/dialects/kubeadm/host/probe.ts';
import { PLACE } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { leases } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { microTime } from '../../src/util/clock.ts';
import { run } from '../../tools/controlplane/run.ts';
import { startDebianServer, whyNoSshd } from '../support/kubeadm/debian-server.ts';
import {
  API_SERVER,
  DATA,
  type EtcdMembers,
  exists,
  MANIFEST,
  NAMES,
  pkiOf,
  startEtcdMembers,
} from '../support/kubeadm/etcd-members.ts';
import { leftOut } from '../support/left-out.ts';
import { buildTool } from './build-tool.ts';
import { kubeconfigFor } from './control-plane.ts';

const SNAPSHOT = '/var/lib/refit/snapshots/before.db';

const why = whyNoSshd();
if (why === undefined) describe('a snapshot', () => suite());
else leftOut('a snapshot', why);

function suite(): void {
  let members: EtcdMembers;
  let manifest = '';
  const servers: SshServer[] = [];
  const kubelets = new AbortController();
  const played: Promise<void>[] = [];

  beforeAll(async () => {
    members = await startEtcdMembers();
    const etcdutl = await buildTool('etcdutl');
    const identity = join(members.root, 'identity');
    await makeKey(identity);
    for (const name of NAMES) {
      const root = members.folderOf(name);
      await mkdir(join(root, 'usr/bin'), { recursive: true });
      await symlink(etcdutl, join(root, 'usr/bin/etcdutl'));
      const directory = join(members.root, `sshd-${name}`);
      await mkdir(directory);
      const host = { name, role: 'controlPlane' as const, root };
      servers.push(await startDebianServer({ host, directory, clientKey: `${identity}.pub` }));
      played.push(playKubelet(name));
    }
    await writeFile(
      join(members.root, 'known_hosts'),
      servers.map(({ knownHost }) => knownHost).join(''),
    );
    manifest = join(members.root, 'cluster.yaml');
    const hosts = NAMES.map((name, index) => ({
      name,
      role: 'controlPlane',
      address: ADDRESS,
      port: servers[index]?.port,
    }));
    const binaries = { kubeadm: { path: '/kubeadm' }, kubelet: { path: '/kubelet' } };
    const ssh = { identityFile: 'identity', knownHostsFile: 'known_hosts' };
    const kubeconfig = await kubeconfigFor('admin');
    await writeFile(manifest, stringify({ version: 'v1.36.3', kubeconfig, hosts, binaries, ssh }));
  });
  afterAll(async () => {
    kubelets.abort();
    await Promise.all(played);
    for (const server of servers) await server.stop();
    await members[Symbol.asyncDispose]();
  });

  /** The data directories that a restore replaced while etcd still ran. */
  const early: string[] = [];

  /**
   * Runs etcd while its manifest exists. Stops etcd a little later than the manifest disappears, because a pod also
   * takes time to end.
   */
  async function playKubelet(name: string): Promise<void> {
    let runs = true;
    while (!kubelets.signal.aborted) {
      const wanted = await exists(join(members.folderOf(name), MANIFEST));
      if (wanted && !runs) await members.start(name);
      if (!wanted && runs) {
        await setTimeout(1500);
        const found = await readdir(join(members.folderOf(name), DATA));
        early.push(...found.filter((each) => each.startsWith('before-restore')));
        await members.stop(name);
      }
      runs = wanted;
      await setTimeout(50);
    }
  }

  async function etcd(name: string, call: string, body: object): Promise<unknown> {
    const pki = join(members.folderOf(name), pkiOf(name));
    const keys = ['--cacert', `${pki}/ca.crt`, '--cert', `${pki}/healthcheck-client.crt`];
    const data = ['--key', `${pki}/healthcheck-client.key`, '-d', JSON.stringify(body)];
    const { stdout } = await run('curl', [
      '-sS',
      ...keys,
      ...data,
      `${members.urlOf(name)}/v3/${call}`,
    ]);
    return JSON.parse(stdout) as unknown;
  }
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const put = async (key: string, value: string): Promise<unknown> =>
    await etcd('cp1', 'kv/put', { key: base64(key), value: base64(value) });
  const valueOf = async (name: string, key: string): Promise<string | undefined> => {
    const answer = (await etcd(name, 'kv/range', { key: base64(key), serializable: true })) as {
      kvs?: { value: string }[];
    };
    const [found] = answer.kvs ?? [];
    return found && Buffer.from(found.value, 'base64').toString();
  };
  const clusterOf = async (): Promise<string | undefined> => {
    const answer = (await etcdAnswers(members.shells, members.hosts)).get('cp1');
    return typeof answer === 'object' ? answer.cluster : undefined;
  };

  /** Runs `restore-etcd`. If `answer` is given, runs it in a terminal and types the answer there. */
  async function restore(
    answer?: string,
    file = manifest,
  ): Promise<{ code: number | null; text: string }> {
    return await kubeadm(['restore-etcd', '-m', file, '--snapshot', SNAPSHOT], answer);
  }

  async function kubeadm(
    args: readonly string[],
    answer?: string,
  ): Promise<{ code: number | null; text: string }> {
    const command = [process.execPath, REFIT, 'kubeadm', ...args];
    const [program = '', ...rest] =
      answer === undefined ? command : ['script', '-qec', command.join(' '), '/dev/null'];
    const child = spawn(program, rest, {
      env: { ...process.env, TMPDIR: members.root, NO_COLOR: '1' },
    });
    if (answer === undefined) child.stdin.end();
    let text = '';
    const hear = (chunk: string): void => {
      const isAsked = !text.includes('Type yes:') && `${text}${chunk}`.includes('Type yes:');
      text += chunk;
      if (isAsked) child.stdin.write(`${answer}\n`);
    };
    child.stdout.setEncoding('utf8').on('data', hear);
    child.stderr.setEncoding('utf8').on('data', hear);
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, text };
  }

  /** Expects that the restore has stopped no member and has left no files. */
  async function expectUntouched(): Promise<void> {
    for (const name of NAMES) {
      expect(await readdir(join(members.folderOf(name), DATA))).toEqual(['member']);
      expect(await exists(join(members.folderOf(name), MANIFEST))).toBe(true);
      expect(await valueOf(name, 'a')).toBe('after');
    }
  }

  const fileOn = (name: string): string => join(members.folderOf(name), SNAPSHOT);

  test('that is not on every host, or damaged, is refused before anything stops', async () => {
    await put('a', 'before');
    const [first] = members.hosts;
    if (!first) throw new Error('there is no host');
    const { stdout } = await members.shells.run(first, snapshotScript('v1.36.3', 1));
    await rename(join(members.folderOf('cp1'), stdout.split(' ')[0] ?? ''), fileOn('cp1'));
    await put('a', 'after');
    await put('b', 'new');
    expect(await restore()).toEqual({
      code: 1,
      text: expect.stringMatching(
        new RegExp(
          `^REFIT_REFUSED: 2 errors .*\n  cp2: no file ${SNAPSHOT}: copy the snapshot .*\n  cp3: no file `,
        ),
      ) as unknown,
    });
    for (const name of NAMES.slice(1)) {
      await mkdir(join(fileOn(name), '..'), { recursive: true });
      await writeFile(fileOn(name), (await readFile(fileOn('cp1'))).subarray(0, -100));
    }
    expect((await restore()).text).toMatch(/\n {2}cp2: \S+ is not a whole snapshot: /);
    await expectUntouched();
  });

  test('is not restored while an upgrade is under way', async () => {
    using client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
    const spec = {
      holderIdentity: 'a_run',
      leaseDurationSeconds: 60,
      renewTime: microTime(Date.now()),
    };
    await client.create(leases, { metadata: { ...PLACE }, spec }, PLACE);
    const { code, text } = await restore();
    await client.delete(leases, PLACE.name, PLACE);
    expect([code, text]).toEqual([
      1,
      expect.stringContaining('REFIT_REFUSED: a run of refit kubeadm apply holds lease'),
    ]);
    await expectUntouched();
  });

  test('is not restored on some of the members', async () => {
    for (const name of NAMES.slice(1)) await copyFile(fileOn('cp1'), fileOn(name));
    const { hosts, ...rest } = parse(await readFile(manifest, 'utf8')) as { hosts: object[] };
    const file = join(members.root, 'two.yaml');
    await writeFile(file, stringify({ ...rest, hosts: hosts.slice(0, 2) }));
    const { code, text } = await restore(undefined, file);
    const line =
      /REFIT_REFUSED: etcd has 3 members, the manifest has 2 control-plane hosts: add the other hosts to the manifest, or run/;
    expect([code, text]).toEqual([1, expect.stringMatching(line)]);
    await expectUntouched();
  });

  test('is not restored without a person who agrees', async () => {
    const { code, text } = await restore();
    expect([code, text]).toEqual([
      2,
      expect.stringMatching(/Restore etcd\? Only a person can answer this: run/),
    ]);
    expect(text).toContain('everything written after the snapshot is lost');
    expect(text).toContain('All members of etcd are healthy: restore only if their data is wrong.');
    expect(await restore('no')).toMatchObject({
      code: 1,
      text: expect.stringContaining('Nothing was changed.') as unknown,
    });
    await expectUntouched();
  });

  test('a snapshot is restored on all etcd members, even after data loss and after a run that was cut off', async () => {
    const before = await clusterOf();
    await members.stop('cp3');
    await rm(join(members.folderOf('cp3'), DATA, 'member'), { recursive: true });
    const away = join(members.folderOf('cp2'), 'var/lib/refit/restore');
    await mkdir(away);
    await rename(join(members.folderOf('cp2'), MANIFEST), join(away, 'etcd.yaml'));
    const cut =
      /^REFIT_REFUSED: cp2: cannot read facts .*: a restore of etcd has begun.*: run refit kubeadm restore-etcd again \(/;
    expect((await kubeadm(['plan', '-m', manifest])).text).toMatch(cut);
    const { code, text } = await restore('yes');
    expect(early).toEqual([]);
    expect([code, text]).toEqual([0, expect.stringMatching(/Starting the API server\.\s+Done\. /)]);
    for (const name of NAMES) {
      expect([await valueOf(name, 'a'), await valueOf(name, 'b')], name).toEqual([
        'before',
        undefined,
      ]);
      const kept = await readdir(join(members.folderOf(name), DATA));
      expect(kept.toSorted()).toEqual(
        name === 'cp3' ? ['member'] : [expect.stringMatching(/^before-restore-\w+$/), 'member'],
      );
      expect(await exists(join(members.folderOf(name), API_SERVER))).toBe(true);
      expect(await exists(join(members.folderOf(name), 'var/lib/refit/restore'))).toBe(false);
    }
    const answers = [...(await etcdAnswers(members.shells, members.hosts)).values()];
    expect(answers).toEqual(
      NAMES.map(
        () => expect.objectContaining({ members: expect.any(Array) as unknown }) as unknown,
      ),
    );
    expect(await clusterOf()).not.toBe(before);
    await put('c', 'written');
    await expect
      .poll(async () => await valueOf('cp3', 'c'), { timeout: 60_000, interval: 250 })
      .toBe('written');
  });

  test('that has an alarm is restored with it, for the user of the data: else nobody could ever end the alarm', async () => {
    const [first] = members.hosts;
    const own = (await etcdAnswers(members.shells, members.hosts)).get('cp1');
    if (!first || typeof own !== 'object') throw new Error('there is no member');
    await etcd('cp1', 'maintenance/alarm', {
      action: 'ACTIVATE',
      memberID: own.id,
      alarm: 'NOSPACE',
    });
    const { stdout } = await members.shells.run(first, snapshotScript('v1.36.3', 1));
    const taken = join(members.folderOf('cp1'), stdout.split(' ')[0] ?? '');
    for (const name of NAMES) await copyFile(taken, fileOn(name));
    const data = join(members.folderOf('cp2'), DATA);
    await chown(data, 1234, 1234);
    const { code, text } = await restore('yes');
    expect([code, text]).toEqual([
      0,
      expect.stringMatching(/The snapshot contains this alarm, too: alarm NOSPACE; .*disarm\./),
    ]);
    expect(await exists(join(members.folderOf('cp3'), API_SERVER))).toBe(true);
    expect((await stat(join(data, 'member/snap/db'))).uid).toBe(1234);
  });
}

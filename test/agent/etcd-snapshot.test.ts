/** Tests the etcd snapshot of a controller, with a real agent and a stand-in of k0s that has the command `backup`. */
import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgentPolicy, AgentSnapshot } from '../../src/signal/annotations.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';
import { NEW, Rig } from './rig.ts';

let cluster: MemoryCluster;
let controllers = 0;

beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

async function startRig(
  etcdSnapshot: AgentSnapshot,
  isWhole = true,
  more: Pick<AgentPolicy, 'cordoning'> = {},
): Promise<Rig> {
  const rig = await Rig.start({
    name: `etcd${++controllers}`,
    role: 'controller',
    admin: cluster.admin,
    kubeconfig: cluster.kubeconfig,
    policy: { soakMs: 0, etcdSnapshot, ...more },
  });
  const snap = join(rig.host.dataDirectory, 'etcd/member/snap');
  await mkdir(snap, { recursive: true });
  const data = Buffer.from('everything that the cluster knows');
  const hash = createHash('sha256').update(data).digest();
  await writeFile(join(snap, 'db'), Buffer.concat([data, isWhole ? hash : data]));
  return rig;
}

const folderOf = (rig: Rig): string => join(rig.host.stateDirectory, 'snapshots');

test('it is taken before the controller changes, and its report says where it is', async () => {
  await using rig = await startRig({ require: true });
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Completed');
  const { etcdSnapshot: { path = '', bytes, sha256 } = {} } = (await rig.report()) ?? {};
  const archive = await readFile(path);
  expect(archive).toHaveLength(bytes ?? -1);
  expect(createHash('sha256').update(archive).digest('hex')).toBe(sha256);
  expect(await readdir(folderOf(rig))).toHaveLength(1);
});

test('if it is required and fails, the controller keeps its binary and its process', async () => {
  await using rig = await startRig({ require: true }, false);
  const { pid } = rig.host;
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses).toEqual(['Downloading', 'Failed']);
  expect(await rig.report()).toMatchObject({
    reason:
      'no snapshot of etcd was taken, so nothing was changed: etcd-snapshot.db in its archive is not whole',
  });
  expect(await rig.installed()).toBe(rig.server.sha256('/old'));
  expect(rig.host.pid).toBe(pid);
  expect(await readdir(folderOf(rig))).toEqual([]);
});

test('if it is not required and fails, the upgrade goes on, and the report says why', async () => {
  await using rig = await startRig({}, false);
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Completed');
  expect(await rig.report()).toMatchObject({
    etcdSnapshot: { failed: 'etcd-snapshot.db in its archive is not whole' },
  });
});

test('an agent that is killed in the middle takes it again, and removes what it left', async () => {
  await using rig = await startRig({ require: true });
  const data = rig.host.dataDirectory;
  await writeFile(join(data, 'hang'), '');
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.until(async () => await access(join(data, 'hangs')));
  await rig.agent?.stop('SIGKILL');
  expect(await readdir(join(folderOf(rig), 'working'))).not.toEqual([]);
  await rm(join(data, 'hang'));
  rig.startAgent();
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Completed');
  const { etcdSnapshot: { path = '' } = {} } = (await rig.report()) ?? {};
  expect(await readdir(folderOf(rig))).toEqual([path.slice(folderOf(rig).length + 1)]);
});

test('an agent that loses its journal while its node is drained takes no second one', async () => {
  await using rig = await startRig({ require: true }, true, { cordoning: 'leader' });
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.until(() => expect(rig.statuses.at(-1)).toBe('Cordoning'));
  const taken = (await rig.report())?.etcdSnapshot;
  await rig.agent?.stop('SIGKILL');
  for (const name of ['journal.json', 'journal.json.spare'])
    await rm(join(rig.host.stateDirectory, name), { force: true });
  rig.startAgent();
  // The agent can begin again only while the node is drained. So the leader answers only after the agent has a journal
  // of the work.
  const journal = join(rig.host.stateDirectory, 'journal.json');
  await rig.until(async () =>
    expect(await readFile(journal, 'utf8')).toContain('"begunLate":true'),
  );
  await rig.answer('ApplyingUpdate');
  await rig.until(() => expect(rig.statuses.at(-1)).toBe('UnCordoning'));
  await rig.answer('Completed');
  await rig.end();
  expect((await rig.report())?.etcdSnapshot).toEqual(taken);
  expect(await readdir(folderOf(rig))).toHaveLength(1);
});

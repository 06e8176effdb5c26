/** Tests a required snapshot of etcd on a real API server, with only the documented rights of a controller. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { NEW, OLD, Rig } from '../agent/rig.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';

const NAME = 'agent-controller';

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
});
afterAll(() => admin.close());

test('a controller without its required snapshot is not changed, and takes it when it is signalled again', async () => {
  await using rig = await Rig.start({
    name: NAME,
    role: 'controller',
    admin,
    kubeconfig: await kubeconfigFor({ controlNode: NAME }),
    policy: { soakMs: 0, etcdSnapshot: { require: true } },
  });
  const database = join(rig.host.dataDirectory, 'etcd/member/snap/db');
  const data = Buffer.from('everything that the cluster knows');
  await mkdir(join(database, '..'), { recursive: true });
  await writeFile(database, data);
  rig.startAgent();
  await rig.announced();
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses).toEqual(['Downloading', 'Failed']);
  const reason = expect.stringMatching(
    /^no snapshot of etcd was taken, so nothing was changed: /,
  ) as string;
  expect(await rig.report()).toMatchObject({ reason });
  expect(await rig.host.version()).toBe(OLD);
  expect(await rig.installed()).toBe(rig.server.sha256('/old'));

  const hash = createHash('sha256').update(data).digest();
  await writeFile(database, Buffer.concat([data, hash]));
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses.at(-1)).toBe('Completed');
  const { etcdSnapshot: { path = '' } = {} } = (await rig.report()) ?? {};
  const folder = join(rig.host.stateDirectory, 'snapshots');
  expect(await readdir(folder)).toEqual([path.slice(folder.length + 1)]);
});

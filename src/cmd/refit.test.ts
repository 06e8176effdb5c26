/** Proves that the executable hands over even when nobody reads what it logs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { startApiServer } from '../../sandbox/api-server/api-server.ts';
import { customResourceDefinitions } from '../api/crd.ts';
import { type KubeObject, leases, namespaces } from '../kube/resources.ts';
import { clientOver } from '../kube/transport/http-client.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const LEASE = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' };

test('a controller whose stderr is closed releases its lease when it stops', async () => {
  await using things = new AsyncDisposableStack();
  const server = await startApiServer();
  things.defer(async () => await server.stop());
  const admin = clientOver(server.caller);
  for (const file of await readdir(`${ROOT}deploy/crds`))
    await admin.create(
      customResourceDefinitions,
      parse(await readFile(`${ROOT}deploy/crds/${file}`, 'utf8')) as KubeObject,
    );
  await admin.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: LEASE.namespace } });
  const directory = await mkdtemp(join(tmpdir(), 'refit-stderr-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  const kubeconfig = join(directory, 'kubeconfig');
  const lists = {
    clusters: [{ name: 'c', cluster: { server: server.url } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    users: [{ name: 'c', user: {} }],
  };
  await writeFile(kubeconfig, JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'c', ...lists }));
  const controller = spawn(process.execPath, [`${ROOT}src/cmd/refit.ts`, 'controller', '--kubeconfig', kubeconfig]);
  const exited = once(controller, 'exit');
  things.defer(async () => {
    controller.kill('SIGKILL');
    await exited;
  });
  const holder = async (): Promise<string | undefined> =>
    (await admin.get(leases, LEASE.name, { namespace: LEASE.namespace })).spec?.holderIdentity;
  await vi.waitFor(async () => expect(await holder()).toBeTruthy(), { timeout: 60_000 });
  controller.stderr.destroy();
  controller.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
  expect(await holder()).toBe('');
});

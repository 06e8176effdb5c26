/** Tests what status shows while a killed leader still holds the lease, without a leader, and with the next one. */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { StatusView } from '../../src/cli/status/view.ts';
import { LEADER_LEASE } from '../../src/dialects/registry.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { leases } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { apply, kubeconfigFor } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

/** More than clocks may differ. */
const PATIENCE = { timeout: 150_000, interval: 500 };
const [W1, W2] = ['gone-w1', 'gone-w2'];

let admin: KubeClient;

beforeAll(async () => {
  for (const file of globSync('deploy/crds/*.yaml')) await apply(await readFile(file, 'utf8'));
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await admin.delete(leases, LEADER_LEASE.name, LEADER_LEASE).catch(() => undefined);
});
afterAll(() => admin.close());

async function lead(): Promise<RefitProcess> {
  return new RefitProcess('controller', '--kubeconfig', await kubeconfigFor('controller'), '--lease-duration', '3s');
}

async function told(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runRefit(...args, '--kubeconfig', await kubeconfigFor('viewer'));
  expect({ code, stderr }).toEqual({ code: 0, stderr: [] });
  return stdout.join('\n');
}

async function leader(): Promise<StatusView['leader']> {
  return (JSON.parse(await told('status', '-o', 'json')) as StatusView).leader;
}

test('a killed leader: late, then gone; the next leader continues', async () => {
  await using puppets = await Puppets.create(admin, W1, W2);
  const first = await lead();
  await puppets.plan(1);
  await puppets.says(W1, 'Restart');
  const { state } = await leader();
  expect(state).toBe('held');

  await first.stop('SIGKILL');
  await puppets.says(W1, 'Completed');
  const late =
    ': another refit controller takes over in some seconds, if one runs. If nothing changes, compare the clocks.';
  await vi.waitFor(async () => expect(await told('why')).toContain(late), PATIENCE);
  const silent = ': no new node starts until a refit controller runs.';
  await vi.waitFor(async () => expect(await told('status')).toContain(silent), PATIENCE);
  expect(await told('why', W2)).toContain(silent);
  expect((await told('preview')).split('\n')[0]).toContain(silent);
  expect(await puppets.signal(W2)).toBeUndefined();

  await using second = await lead();
  await puppets.says(W2, 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect((await leader()).state).toBe('held');
  expect(await second.stop('SIGTERM')).toBe(0);
  expect((await leader()).state).toBe('none');
});

/**
 * Tests what `refit status` shows in three situations: a killed leader still holds the lease, there is no leader, and
 * the next leader runs.
 */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import type { ShownStatus } from '../../src/cli/status/json-form.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import { CORDON_ANNOTATION } from '../../src/drain/cordon-marks.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { type Event, events, leases, nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { microTime } from '../../src/util/clock.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

/** The timeout is longer than the difference between clocks that Refit tolerates. */
const PATIENCE = { timeout: 150_000, interval: 500 };
const W1 = 'gone-w1';
const W2 = 'gone-w2';

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await admin.delete(leases, LEADER_LEASE.name, LEADER_LEASE).catch(() => undefined);
});
afterAll(() => admin.close());

async function lead(): Promise<RefitProcess> {
  return new RefitProcess(
    'controller',
    '--kubeconfig',
    await kubeconfigFor('controller'),
    '--lease-duration',
    '3s',
  );
}

async function told(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runRefit(
    ...args,
    '--kubeconfig',
    await kubeconfigFor('viewer'),
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: [] });
  return stdout.join('\n');
}

async function leader(): Promise<ShownStatus['leader']> {
  return (JSON.parse(await told('status', '-o', 'json')) as ShownStatus).leader;
}

test('Refit reports a killed leader as late, then as gone, and the next leader continues the plan', async () => {
  await using puppets = await Puppets.create(admin, W1, W2);
  const first = await lead();
  await puppets.plan(1);
  await puppets.says(W1, 'Restart');
  const { state } = await leader();
  expect(state).toBe('held');

  await first.stop('SIGKILL');
  await puppets.says(W1, 'Completed');
  const late =
    ': another refit controller takes over in a few seconds, if one runs. If nothing changes, check that the clocks of this machine and of the controllers agree.';
  await vi.waitFor(async () => expect(await told('why')).toContain(late), PATIENCE);
  const silent = ': no new node starts until a refit controller runs.';
  await vi.waitFor(async () => expect(await told('status')).toContain(silent), PATIENCE);
  expect(await told('why', W2)).toContain(silent);
  expect((await told('preview')).split('\n')[0]).toContain(silent);
  expect(await puppets.signal(W2)).toBeUndefined();

  await using second = await lead();
  // On a busy machine, this step has taken too long in rare cases. The error then shows the reason.
  await puppets.says(W2, 'Completed').catch(async (error: unknown) => {
    throw new Error([await told('why'), ...second.stderr.slice(-12)].join('\n'), { cause: error });
  });
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect((await leader()).state).toBe('held');
  expect(await second.stop('SIGTERM')).toBe(0);
  expect((await leader()).state).toBe('none');
  // This timeout is longer than all waits of the test together, so that a wait that fails can report what it waited
  // for.
}, 600_000);

test('a Plan that was deleted while nobody led: status and why name the nodes, until a leader cleans them up', async () => {
  const W4 = 'gone-w4';
  await admin.delete(leases, LEADER_LEASE.name, LEADER_LEASE).catch(() => undefined);
  const metadata = { name: W4, annotations: { [CORDON_ANNOTATION]: 'gone/2026-11-20T08:00:00Z' } };
  await admin.create(nodes, { metadata, spec: { unschedulable: true } });
  onTestFinished(async () => await admin.delete(nodes, W4));
  const words = `Still cordoned for a deleted plan: ${W4}: the leader uncordons each node when its upgrade has ended; check that its agent runs.`;
  for (const command of ['status', 'why']) {
    const said = await told(command);
    expect(said).toContain('No leader');
    expect(said).toContain(words);
  }
  const next = await lead();
  onTestFinished(async () => void (await next.stop('SIGTERM')));
  await vi.waitFor(
    async () => expect((await admin.get(nodes, W4)).spec?.unschedulable).toBeUndefined(),
    PATIENCE,
  );
  expect(await told('status')).not.toContain(words);
});

test("k0s's own leader leads: two that wait write one Event of a downgrade, and nothing else", async () => {
  const { name, namespace } = LEADER_LEASE;
  const spec = {
    holderIdentity: 'f'.repeat(32),
    leaseDurationSeconds: 3_600,
    renewTime: microTime(Date.now()),
  };
  await admin.delete(leases, name, { namespace }).catch(() => undefined);
  await admin.create(leases, { metadata: { name, namespace }, spec }, { namespace });
  await using puppets = await Puppets.create(admin, 'gone-w3');
  const plan = await puppets.plan(1, { version: 'v1.36.2+k0s.0' });
  const told = async (): Promise<Event[]> => {
    const { items } = await admin.list(events, { namespace: 'default' });
    return items.filter(({ involvedObject }) => involvedObject.uid === plan.metadata.uid);
  };
  await using standbys = new AsyncDisposableStack();
  standbys.use(await lead());
  await vi.waitFor(
    async () => expect((await told()).map(({ reason }) => reason)).toEqual(['Downgrade']),
    PATIENCE,
  );
  const [event] = await told();
  expect(event?.message).toMatch(/gone-w3.*k0s's own leader carries the plan out nevertheless$/);

  // Times of Events have whole seconds, so the test waits until a new time differs from the last one.
  await vi.waitFor(
    () => expect(Date.now()).toBeGreaterThan(Date.parse(event?.lastTimestamp ?? '') + 1_000),
    PATIENCE,
  );
  standbys.use(await lead());
  await vi.waitFor(
    async () => expect((await told())[0]?.lastTimestamp).not.toBe(event?.lastTimestamp),
    PATIENCE,
  );
  expect(await told()).toHaveLength(1);
  expect(await puppets.signal('gone-w3')).toBeUndefined();
  expect((await admin.get(plans, 'autopilot')).status).toBeUndefined();
  await admin.delete(leases, name, { namespace });
});

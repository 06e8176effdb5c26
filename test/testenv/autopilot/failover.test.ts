/**
 * Tests that a plan continues without a loss while one API server restarts together with its controller. All processes
 * are configured to use this API server.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { controllerAddress } from '../../../sandbox/cluster/hosts.ts';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { LEADER_LEASE } from '../../../src/dialects/autopilot/leader-lease.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { leases } from '../../../src/kube/resources.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { createInformer } from '../../../src/kube/watch/informer.ts';
import { freePort } from '../../../tools/controlplane/ports.ts';
import { startMixed } from '../../support/doubles/mixed.ts';
import { Motion } from '../../support/expectations/motion.ts';
import { testUnless } from '../../support/left-out.ts';
import { controlPlane, kubeconfigFor } from '../control-plane.ts';
import { kubeconfigVia } from '../kubeconfig-variants.ts';
import { addressOfMachine, Peers } from './peers.ts';
import { FROM, TO, uniquePrefix } from './scene.ts';

const ADDRESS = addressOfMachine();
const CONTROLLERS = 3;
const RESTART_DELAY_MS = 8_000;
/**
 * The duration of the Lease of the sandbox's leaders, in milliseconds. A leader that cannot renew its Lease for this
 * time has lost it.
 */
const LEASE_MS = 5_000;

const why = ADDRESS === undefined ? 'this host has no address beside loopback' : undefined;

testUnless(why)(
  'the leader leads on while the API server that everything is pinned to is away',
  async () => {
    await using things = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), 'refit-failover-'));
    things.defer(async () => await rm(directory, { recursive: true }));
    const prefix = uniquePrefix();
    const apiPort = await freePort();
    const url = `https://${controllerAddress(1)}:${apiPort}`;
    const names = Array.from(
      { length: CONTROLLERS },
      (_, index) => `${prefix}controller${index + 1}`,
    );
    const peers = things.use(await Peers.create(ADDRESS ?? '', controlPlane().port, names));
    const outages = new Motion();
    const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
    things.defer(() => admin.close());
    things.use(await peers.publish(admin));
    const mixed = things.use(
      await startMixed({
        combination: { leader: 'refit', agents: 'refit' },
        controllers: CONTROLLERS,
        workers: 1,
        prefix,
        apiPort,
        version: FROM,
        offers: [TO],
        restartDelayMs: RESTART_DELAY_MS,
        agentFlags: ['--soak', '200ms'],
        kubeconfig: async (user) =>
          await (user === 'admin' ? kubeconfigFor(user) : kubeconfigVia(directory, user, url)),
        onService: (host, running) => {
          peers.note(host, running);
          outages[running ? 'end' : 'begin'](host, performance.now());
        },
      }),
    );
    const { cluster } = mixed;
    const stop = new AbortController();
    things.defer(() => stop.abort());
    const renewals: number[] = [];
    const lease = createInformer(admin, leases, { namespace: LEADER_LEASE.namespace });
    lease.addHandler({ updated: () => renewals.push(performance.now()) });
    void lease.run(stop.signal);
    await lease.whenSynced();
    await cluster.client.create(
      plans,
      cluster.plan({ id: 'failover', version: TO, concurrent: 1 }),
    );
    await mixed.until(async () =>
      expect((await cluster.client.get(plans, 'autopilot')).status?.state).toBe('Completed'),
    );
    for (const host of cluster.hosts) expect(await host.version()).toBe(TO);
    const outage = outages.intervals().find(({ name }) => name === names[0]);
    const during = renewals.filter(
      (at) => outage !== undefined && at > outage.from + LEASE_MS && at < outage.to,
    );
    expect(during).not.toEqual([]);
    // The leader continues at another server before its Lease expires. Otherwise another leader could take over.
    const gaps = renewals.map((at, index) =>
      at > (outage?.from ?? 0) ? at - (renewals[index - 1] ?? at) : 0,
    );
    const longest = Math.max(...gaps);
    console.log(`longest time without a renewal: ${Math.round(longest)} ms`);
    expect(longest).toBeLessThan(LEASE_MS);
  },
);

/** Owns `refit controller`: names everything that this process starts. */
import { randomBytes } from 'node:crypto';
import type { ControllerFlags } from '../cli/program.ts';
import { DIALECTS, LEADER_LEASE } from '../dialects/registry.ts';
import { campaignController } from '../engine/controller.ts';
import { askControlPlane } from '../engine/health.ts';
import { DEFAULT_POLICY } from '../engine/model.ts';
import { createElection } from '../kube/election.ts';
import { createEventRecorder } from '../kube/events.ts';
import { fencedClient } from '../kube/fence.ts';
import { createClient } from '../kube/http-client.ts';
import { loadClusterConfig } from '../kube/kubeconfig.ts';
import { askReadyz } from '../kube/readyz.ts';
import { leases } from '../kube/resources.ts';
import { createHealthServer } from '../runtime/health.ts';
import { pinoLogger } from '../runtime/log-pino.ts';
import { createManager } from '../runtime/manager.ts';
import { prometheusMetrics } from '../runtime/metrics-prometheus.ts';
import { systemClock as clock } from '../util/clock.ts';
import { EXIT } from '../util/errors.ts';

const READYZ_TIMEOUT_MS = 5000;

/** Runs until `signal` aborts. Rejects at once where the API server cannot be reached or lacks what Refit needs. */
export async function runController(flags: ControllerFlags, signal: AbortSignal): Promise<number> {
  const log = pinoLogger(flags.logLevel);
  const metrics = prometheusMetrics();
  const config = await loadClusterConfig({ path: flags.kubeconfig, context: flags.context });
  const client = createClient(config, {
    userAgent: 'refit-controller',
    onRequest: (record) => metrics.requested(record),
  });
  // What may not be read is told at once: informers and the election would try again for ever.
  for (const { plans, objects } of DIALECTS) {
    for (const kind of [plans, ...Object.values(objects)]) await client.list(kind, { limit: 1, signal });
  }
  await client.list(leases, { namespace: LEADER_LEASE.namespace, limit: 1, signal });

  const identity = randomBytes(16).toString('hex');
  const election = createElection({
    client,
    ...LEADER_LEASE,
    identity,
    ...leaseTimes(flags.leaseDuration),
    clock,
    logger: log,
  });
  const events = createEventRecorder({ client, component: 'refit-controller', clock, logger: log });
  const manager = createManager({ election, clock, logger: log, metrics });
  manager.addRunnable(events);
  for (const dialect of DIALECTS) {
    manager.addController(
      campaignController(dialect, {
        reader: client,
        writer: fencedClient(client, election),
        policy: { ...DEFAULT_POLICY, targetDeadlineMs: flags.targetDeadline },
        clock,
        log,
        askControlPlane: async (endpoints, signal) => {
          const options = { port: flags.apiPort, timeoutMs: READYZ_TIMEOUT_MS, signal };
          return await askControlPlane(endpoints, async (host) => await askReadyz(config, host, options));
        },
        announce: (plan, { type, reason }) =>
          events.record(plan, { type, reason: reason.code, message: reason.message }),
      }),
    );
  }
  if (flags.healthAddress !== undefined) {
    const { healthAddress: address } = flags;
    const health = createHealthServer({ address, metrics, waitingFor: () => manager.waitingFor() });
    await health.listening;
    manager.addRunnable(health);
  }
  log.info('refit controller starts', { identity, server: config.server, dialects: DIALECTS.map(({ name }) => name) });
  try {
    await manager.run(signal);
    return EXIT.ok;
  } finally {
    client.close();
  }
}

/** Renewal has two thirds of the lease's time, and tries five times in that. */
function leaseTimes(leaseDurationMs: number): {
  leaseDurationMs: number;
  renewDeadlineMs: number;
  retryPeriodMs: number;
} {
  const renewDeadlineMs = (leaseDurationMs * 2) / 3;
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs: renewDeadlineMs / 5 };
}

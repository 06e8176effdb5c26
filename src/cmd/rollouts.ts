/** Owns how a process carries plans out: one lease, one manager, and one controller for each dialect. */
import { randomBytes } from 'node:crypto';
import { upgradePolicies } from '../api/refit/upgrade-policy.ts';
import { DrainPreviewer } from '../drain/drain-preview.ts';
import { createDrains } from '../drain/drains.ts';
import { rolloutController } from '../engine/controller.ts';
import type { Dialect } from '../engine/dialect.ts';
import { askControlPlane } from '../engine/observe/api-server-health.ts';
import type { Prober } from '../engine/observe/probes.ts';
import { policyOfPlan } from '../engine/policy/plan-policy.ts';
import { policyController } from '../engine/policy/policy-controller.ts';
import type { RolloutPolicy } from '../engine/policy/rollout-policy.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ClusterConfig } from '../kube/config/cluster-config.ts';
import { createElection, timesOf } from '../kube/election/election.ts';
import { guardedClient } from '../kube/election/write-guard.ts';
import { createEventRecorder } from '../kube/events/recorder.ts';
import { leases } from '../kube/resources.ts';
import { isNotFound } from '../kube/status-error.ts';
import { boundedClient } from '../kube/transport/bounded-client.ts';
import { askReadyz } from '../kube/transport/readyz.ts';
import { createInformer } from '../kube/watch/informer.ts';
import { createHealthServer } from '../runtime/health.ts';
import { createManager, type Manager } from '../runtime/manager.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { type Clock, systemClock } from '../util/clock.ts';
import type { Logger } from '../util/log.ts';

export interface RolloutsParts {
  readonly dialects: readonly Dialect[];
  readonly config: ClusterConfig;
  readonly client: KubeClient;
  readonly lease: { readonly namespace: string; readonly name: string };
  /** What the lease carries while we hold it. */
  leaseLabels?(identity: string): Record<string, string>;
  /** Milliseconds; whole seconds. */
  readonly leaseDurationMs: number;
  /** Names us in events. */
  readonly component: string;
  /** What binds plans that no UpgradePolicy covers. */
  readonly policy: RolloutPolicy;
  /** Port of the API servers on every controller; that of the connection where absent. */
  readonly apiPort?: number | undefined;
  /** `host:port`; nothing is served where absent. */
  readonly healthAddress?: string | undefined;
  readonly metrics: Metrics;
  /** The system's where absent. */
  readonly clock?: Clock;
  readonly log: Logger;
}

const READYZ_TIMEOUT_MS = 5000;
/** Enough to keep an API server busy from afar; the first wave of a large plan asks for thousands at once. */
const REQUESTS_AT_ONCE = 32;

/** Rejects where what the dialects watch cannot be listed: informers would try again for ever. */
export async function prepareRollouts(parts: RolloutsParts, abort: AbortSignal): Promise<Manager> {
  const { dialects, client, config, clock = systemClock, log, metrics } = parts;
  await tryAccess(parts, abort);
  const identity = randomBytes(16).toString('hex');
  const labels = { labels: (held: string) => parts.leaseLabels?.(held) ?? {} };
  const times = timesOf(parts.leaseDurationMs);
  const election = createElection({ client, ...parts.lease, identity, ...labels, ...times, clock, logger: log });
  const manager = createManager({ election, clock, logger: log, metrics });
  // Whatever may burst goes through one bound, and nothing that keeps the lease does.
  addControllers(manager, boundedClient(guardedClient(client, election), REQUESTS_AT_ONCE), parts, abort);
  if (parts.healthAddress !== undefined) {
    const waitingFor = (): string[] => manager.waitingFor();
    const health = createHealthServer({ address: parts.healthAddress, metrics, waitingFor });
    await health.listening;
    manager.addRunnable(health);
  }
  log.info(`${parts.component} starts`, {
    identity,
    server: config.server,
    dialects: dialects.map(({ name }) => name),
  });
  return manager;
}

async function tryAccess({ dialects, client, lease }: RolloutsParts, abort: AbortSignal): Promise<void> {
  await client.list(upgradePolicies, { limit: 1, abort });
  for (const { plans, scope: { namespace: home, fieldSelector } = {}, watched } of dialects) {
    for (const { resource, namespace } of [{ resource: plans, namespace: home }, ...watched]) {
      const own = resource === plans ? fieldSelector : undefined;
      await client.list(resource, { limit: 1, abort, namespace, fieldSelector: own });
    }
  }
  await getLease(client, lease, abort);
}

/** `writer` writes only while we lead. */
function addControllers(manager: Manager, writer: KubeClient, parts: RolloutsParts, abort: AbortSignal): void {
  const { dialects, client, clock = systemClock, log, metrics, policy } = parts;
  const events = createEventRecorder({ client, component: parts.component, clock, logger: log });
  manager.addRunnable(events);
  const drains = createDrains({ client: writer, clock, random: Math.random, log });
  // Before the controllers: a drain that goes on under a lease that is lost only fails, and whoever leads next begins it anew.
  manager.addRunnable({ name: 'drains', run: async (term) => await drains.run(term) }, 'leading');
  const policies = createInformer(client, upgradePolicies, { logger: log, clock });
  const prober = proberOf(parts, writer, abort);
  const shared = { reader: client, writer, policies, drains, prober, clock, log, metrics };
  const rollouts = dialects.map((dialect) =>
    rolloutController(dialect, {
      ...shared,
      policyFor: (plan) => policyOfPlan(dialect, policies.list(), plan, policy),
      announce: (object, { type, reason }) =>
        events.record(object, { type, reason: reason.code, message: reason.message }),
    }),
  );
  for (const rollout of rollouts) manager.addController(rollout);
  manager.addController(
    policyController({
      writer,
      clock,
      policies,
      plans: Object.fromEntries(rollouts.map(({ name, plans }) => [name, plans])),
      isPlan: (name, object) => dialects.find((dialect) => dialect.name === name)?.scope?.isPlan?.(object) ?? true,
    }),
  );
}

function proberOf({ config, apiPort }: RolloutsParts, client: KubeClient, abort: AbortSignal): Prober {
  return {
    askControlPlane: async (endpoints, stop) => {
      const options = { port: apiPort, timeoutMs: READYZ_TIMEOUT_MS, abort: stop };
      return await askControlPlane(endpoints, async (host) => await askReadyz(config, host, options));
    },
    look: (stop = abort) => new DrainPreviewer(client, stop),
  };
}

/** One that does not exist is no obstacle; one that may not be read is: nobody could ever lead. */
async function getLease(client: KubeClient, lease: RolloutsParts['lease'], abort: AbortSignal): Promise<void> {
  try {
    await client.get(leases, lease.name, { namespace: lease.namespace, abort });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Owns how a process carries plans out: one lease, one manager, and one controller for each dialect. */
import { randomBytes } from 'node:crypto';
import { upgradePolicies } from '../api/refit/upgrade-policy.ts';
import { createDrains } from '../drain/drains.ts';
import { Look } from '../drain/outlook.ts';
import { campaignController } from '../engine/controller.ts';
import type { Dialect } from '../engine/dialect.ts';
import { askControlPlane } from '../engine/health.ts';
import type { Inquirer } from '../engine/inquire.ts';
import type { CampaignPolicy } from '../engine/policy/campaign-policy.ts';
import { policyOfPlan } from '../engine/policy/plan-policy.ts';
import { policyController } from '../engine/policy/policy-controller.ts';
import { boundedClient } from '../kube/bounded.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ClusterConfig } from '../kube/cluster-config.ts';
import { createElection, timesOf } from '../kube/election.ts';
import { createEventRecorder } from '../kube/events.ts';
import { fencedClient } from '../kube/fence.ts';
import { createInformer } from '../kube/informer.ts';
import { askReadyz } from '../kube/readyz.ts';
import { leases } from '../kube/resources.ts';
import { isNotFound } from '../kube/status-error.ts';
import { createHealthServer } from '../runtime/health.ts';
import { createManager, type Manager } from '../runtime/manager.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { type Clock, systemClock } from '../util/clock.ts';
import type { Logger } from '../util/log.ts';

export interface CampaignsParts {
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
  readonly policy: CampaignPolicy;
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
export async function prepareCampaigns(parts: CampaignsParts, signal: AbortSignal): Promise<Manager> {
  const { dialects, client, config, clock = systemClock, log, metrics } = parts;
  await tryAccess(parts, signal);
  const identity = randomBytes(16).toString('hex');
  const labels = { labels: (held: string) => parts.leaseLabels?.(held) ?? {} };
  const times = timesOf(parts.leaseDurationMs);
  const election = createElection({ client, ...parts.lease, identity, ...labels, ...times, clock, logger: log });
  const manager = createManager({ election, clock, logger: log, metrics });
  // Whatever may burst goes through one bound, and nothing that keeps the lease does.
  addControllers(manager, boundedClient(fencedClient(client, election), REQUESTS_AT_ONCE), parts, signal);
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

async function tryAccess({ dialects, client, lease }: CampaignsParts, signal: AbortSignal): Promise<void> {
  await client.list(upgradePolicies, { limit: 1, signal });
  for (const { plans, namespace: home, fieldSelector, watched } of dialects) {
    for (const { resource, namespace } of [{ resource: plans, namespace: home }, ...watched]) {
      const own = resource === plans ? fieldSelector : undefined;
      await client.list(resource, { limit: 1, signal, namespace, fieldSelector: own });
    }
  }
  await getLease(client, lease, signal);
}

/** `writer` writes only while we lead. */
function addControllers(manager: Manager, writer: KubeClient, parts: CampaignsParts, signal: AbortSignal): void {
  const { dialects, client, clock = systemClock, log, metrics, policy } = parts;
  const events = createEventRecorder({ client, component: parts.component, clock, logger: log });
  manager.addRunnable(events);
  const drains = createDrains({ client: writer, clock, random: Math.random, log });
  // Before the controllers: a drain that goes on under a lease that is lost only fails, and whoever leads next begins it anew.
  manager.addRunnable({ name: 'drains', run: async (term) => await drains.run(term) }, 'leading');
  const policies = createInformer(client, upgradePolicies, { logger: log, clock });
  const inquirer = inquirerOf(parts, writer, signal);
  const shared = { reader: client, writer, policies, drains, inquirer, clock, log, metrics };
  const campaigns = dialects.map((dialect) =>
    campaignController(dialect, {
      ...shared,
      policyFor: (plan) => policyOfPlan(dialect, policies.list(), plan, policy),
      announce: (object, { type, reason }) =>
        events.record(object, { type, reason: reason.code, message: reason.message }),
    }),
  );
  for (const campaign of campaigns) manager.addController(campaign);
  manager.addController(
    policyController({
      writer,
      clock,
      policies,
      plans: Object.fromEntries(campaigns.map(({ name, plans }) => [name, plans])),
      isPlan: (name, object) => dialects.find((dialect) => dialect.name === name)?.isPlan?.(object) ?? true,
    }),
  );
}

function inquirerOf({ config, apiPort }: CampaignsParts, client: KubeClient, signal: AbortSignal): Inquirer {
  return {
    askControlPlane: async (endpoints, stop) => {
      const options = { port: apiPort, timeoutMs: READYZ_TIMEOUT_MS, signal: stop };
      return await askControlPlane(endpoints, async (host) => await askReadyz(config, host, options));
    },
    look: (stop = signal) => new Look(client, stop),
  };
}

/** One that does not exist is no obstacle; one that may not be read is: nobody could ever lead. */
async function getLease(client: KubeClient, lease: CampaignsParts['lease'], signal: AbortSignal): Promise<void> {
  try {
    await client.get(leases, lease.name, { namespace: lease.namespace, signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

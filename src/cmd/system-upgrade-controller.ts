#!/usr/bin/env node
/** Owns the executable that stands in the Deployment of Rancher's system-upgrade-controller: its environment, no arguments. */
import { randomBytes } from 'node:crypto';
import { type CattlePlan, cattlePlanKind } from '../api/cattle/plan.ts';
import { upgradePolicies } from '../api/refit/upgrade-policy.ts';
import { askChannel } from '../dialects/cattle/channel/channel.ts';
import { channelController } from '../dialects/cattle/channel/channel-controller.ts';
import { flag, jobSettings, leaseTimes, pollingInterval } from '../dialects/cattle/config.ts';
import { cattle } from '../dialects/cattle/dialect.ts';
import { installMissing } from '../dialects/cattle/install-crd.ts';
import { rolloutController } from '../engine/controller.ts';
import { listPolicies } from '../engine/policy/choose-policy.ts';
import { policyOfPlan } from '../engine/policy/plan-policy.ts';
import { policyController } from '../engine/policy/policy-controller.ts';
import { loadClusterConfig } from '../kube/config/kubeconfig.ts';
import { createElection } from '../kube/election/election.ts';
import { guardedClient } from '../kube/election/write-guard.ts';
import { createEventRecorder } from '../kube/events/recorder.ts';
import { namespaces } from '../kube/resources.ts';
import { createClient } from '../kube/transport/http-client.ts';
import { describeProblem } from '../kube/transport/problems.ts';
import { createInformer } from '../kube/watch/informer.ts';
import { pinoLogger } from '../runtime/log-pino.ts';
import { createManager } from '../runtime/manager.ts';
import { systemClock as clock } from '../util/clock.ts';
import { EXIT, RefitError } from '../util/errors.ts';

const PREFIX = 'SYSTEM_UPGRADE_CONTROLLER_';
const CHANNEL_TIMEOUT_MS = 30_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** Runs until `signal` aborts. Rejects at once where a variable is missing or the API server cannot be used. */
async function run(env: Environment, abort: AbortSignal): Promise<void> {
  const [name, namespace] = [required(env, 'NAME'), required(env, 'NAMESPACE')];
  const log = pinoLogger(isSet(env, 'DEBUG') ? 'debug' : 'info');
  const client = createClient(await connection(env), { userAgent: name });
  try {
    // What stands for the cluster before channels.
    const clusterId = (await client.get(namespaces, 'kube-system', { abort })).metadata.uid ?? '';
    await installMissing(client, cattlePlanKind, namespace, clock, abort);

    const identity = randomBytes(16).toString('hex');
    const election = isSet(env, 'LEADER_ELECT')
      ? createElection({ client, namespace, name, identity, ...leaseTimes(env, log), clock, logger: log })
      : undefined;
    const writer = election ? guardedClient(client, election) : client;
    const manager = createManager({ ...(election ? { election } : {}), clock, logger: log });
    const events = createEventRecorder({ client, component: name, clock, logger: log });
    const dialect = cattle({ name, namespace, job: jobSettings(env, log) });
    const policies = (await listPolicies(client, abort)) && createInformer(client, upgradePolicies, { logger: log });
    const rollouts = rolloutController(dialect, {
      reader: client,
      writer,
      policyFor: (plan) => policyOfPlan(dialect, policies?.list() ?? [], plan as CattlePlan),
      policies,
      clock,
      log,
      prober: { askControlPlane: () => Promise.resolve([]) },
      announce: (plan, { type, reason }) => events.record(plan, { type, reason: reason.code, message: reason.message }),
    });
    manager.addController(rollouts);
    if (policies) {
      const plans = { [dialect.name]: rollouts.plans };
      manager.addController(policyController({ writer, clock, policies, plans, isPlan: () => true }));
    }
    manager.addController(
      channelController({
        reader: client,
        writer,
        namespace,
        intervalMs: pollingInterval(env, log),
        clock,
        log,
        ask: async (channel, latestVersion) =>
          await askChannel(channel, { clusterId, latestVersion, timeoutMs: CHANNEL_TIMEOUT_MS }),
      }),
    );
    log.info('system-upgrade-controller starts', { name, namespace, identity });
    await manager.run(abort);
  } finally {
    client.close();
  }
}

/** As the original, this asks neither KUBECONFIG nor the command line. */
async function connection(env: Environment): ReturnType<typeof loadClusterConfig> {
  const config = await loadClusterConfig({
    path: env[`${PREFIX}KUBE_CONFIG`] || undefined,
    env: { ...env, KUBECONFIG: undefined },
  });
  const server = env[`${PREFIX}MASTER_URL`];
  return server ? { ...config, server } : config;
}

function required(env: Environment, name: string): string {
  const value = env[`${PREFIX}${name}`];
  if (value) return value;
  throw new RefitError('REFIT_USAGE', `${PREFIX}${name} is not set`);
}

function isSet(env: Environment, name: string): boolean {
  return flag(env[`${PREFIX}${name}`] ?? '') === true;
}

const interrupted = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort(new Error(name)));
try {
  await run(process.env, interrupted.signal);
  process.exitCode = EXIT.ok;
} catch (thrown) {
  const error = describeProblem(thrown);
  process.stderr.write(`${error.line}\n`);
  process.exitCode = interrupted.signal.aborted ? EXIT.ok : error.exitCode;
}

/** Runs `refit system-upgrade-controller`, for the Deployment of Rancher's controller: configured by its environment. */
import { VERSION } from '../cli/version.ts';
import { type ChannelParts, channelController } from '../dialects/cattle/channel-controller.ts';
import { flag, jobSettings, leaseTimes, pollingInterval } from '../dialects/cattle/config.ts';
import { cattle } from '../dialects/cattle/dialect.ts';
import type { Environment } from '../http/proxy-choice.ts';
import { installPlans } from '../install/cattle-plans.ts';
import { loadClusterConfig } from '../kube/config/kubeconfig.ts';
import { createClient } from '../kube/transport/http-client.ts';
import { prepareControllerProcess } from '../process/controller-process.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { clusterIdOf } from '../updates/channel/cluster-headers.ts';
import { redirectChannels } from '../updates/channel/redirected-version.ts';
import { systemClock as clock } from '../util/clock.ts';
import { RefitError } from '../util/errors.ts';
import { stderrLogger } from '../util/log.ts';

const PREFIX = 'SYSTEM_UPGRADE_CONTROLLER_';

/** Runs until `abort`. Rejects at once if a variable is missing or the API server cannot be used. */
export async function runSystemUpgradeController(env: Environment, abort: AbortSignal): Promise<void> {
  const [name, namespace] = [required(env, 'NAME'), required(env, 'NAMESPACE')];
  const log = stderrLogger(isSet(env, 'DEBUG') ? 'debug' : 'info');
  const metrics = createMetrics(VERSION);
  const config = await connection(env);
  using client = createClient(config, { userAgent: name, onRequest: metrics.requested });
  if (isSet(env, 'INSTALL_CRD')) await installPlans(client, namespace, clock, abort);
  const askChannel = redirectChannels({ clock, environment: env, userAgent: name, abort });
  const ask: ChannelParts['ask'] = async (channel, latestVersion) =>
    await askChannel(channel, await clusterIdOf({ client, abort }), latestVersion);
  const intervalMs = pollingInterval(env, log);
  const job = jobSettings(env, log);
  const controller = await prepareControllerProcess(
    {
      component: name,
      config,
      client,
      dialects: [cattle({ name, namespace, job, plansShareNodes: isSet(env, 'PLANS_SHARE_NODES') })],
      ...(isSet(env, 'LEADER_ELECT') ? { lease: { namespace, name, ...leaseTimes(env, log) } } : {}),
      // The original's service account knows nothing of ours.
      policies: 'if-allowed',
      drainsNodes: !job.drainInJob,
      controllers: ({ writer, events }) => [
        channelController({ reader: client, writer, events, namespace, intervalMs, clock, log, ask }),
      ],
      healthAddress: env[`${PREFIX}HEALTH_ADDRESS`] || undefined,
      metrics,
      log,
    },
    abort,
  );
  await controller.run(abort);
}

/** Like the original, this ignores KUBECONFIG and the command line. */
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

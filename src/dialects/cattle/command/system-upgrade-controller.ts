/**
 * Runs `refit system-upgrade-controller`. It reads the environment variables that the Deployment of Rancher's
 * controller sets.
 */

import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { VERSION } from '../../../cli/version.ts';
import { prepareControllerProcess } from '../../../composition/controller-process.ts';
import { keepHeapSmall } from '../../../composition/small-heap.ts';
import { checkTraceSettings } from '../../../composition/trace-exporter.ts';
import type { Environment } from '../../../http/proxy-choice.ts';
import { deployFile } from '../../../install/deploy-files.ts';
import { objectsIn } from '../../../install/manifests.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { loadClusterConfig } from '../../../kube/config/kubeconfig.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
} from '../../../kube/resources.ts';
import { readServerVersion } from '../../../kube/server-version.ts';
import { ifFound, ifNew } from '../../../kube/status-error.ts';
import { createClient } from '../../../kube/transport/http-client.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import { tryList } from '../../../kube/try-list.ts';
import type { Informer } from '../../../kube/watch/informer.ts';
import { createMetrics } from '../../../runtime/metrics.ts';
import { clusterIdOf } from '../../../updates/channel/cluster-headers.ts';
import { redirectChannels } from '../../../updates/channel/redirected-version.ts';
import { systemClock as clock, sleep } from '../../../util/clock.ts';
import { formatDuration } from '../../../util/duration.ts';
import { RefitError } from '../../../util/errors.ts';
import { stderrLogger } from '../../../util/log.ts';
import { cattle } from '../plan/cattle-dialect.ts';
import { type ChannelParts, channelController } from '../plan/channel-controller.ts';
import {
  controllerSettings,
  isSet,
  jobSettings,
  leaseTimes,
  listedJobNamespaces,
  pollingInterval,
  versionSettings,
} from '../plan/config.ts';
import { rancherReadiness } from '../plan/readiness.ts';
import { policyEffects } from '../policy-effects.ts';

const PREFIX = 'SYSTEM_UPGRADE_CONTROLLER_';

/** Runs until `abort` fires. Rejects if a required variable is missing or the API server cannot be used. */
export async function runSystemUpgradeController(
  env: Environment,
  abort: AbortSignal,
): Promise<void> {
  const { name, namespace, server, healthAddress, apiPort, sender } = controllerSettings(env);
  keepHeapSmall();
  const isDebug = isSet(env, 'DEBUG', stderrLogger('info'));
  const log = stderrLogger(isDebug ? 'debug' : 'info');
  // The variables are read before the first request, so that a wrong variable is reported even if the API server does
  // not answer.
  const intervalMs = pollingInterval(env, log);
  const job = jobSettings(env, log);
  const times = isSet(env, 'LEADER_ELECT', log) ? leaseTimes(env, log) : undefined;
  const settings = versionSettings(env, log);
  const plansShareNodes = isSet(env, 'PLANS_SHARE_NODES', log);
  const installsCrd = isSet(env, 'INSTALL_CRD', log);
  checkTraceSettings(process.env);
  const metrics = createMetrics(VERSION);
  const listed = listedJobNamespaces(env);
  const path = env[`${PREFIX}KUBE_CONFIG`] || undefined;
  // The original ignores KUBECONFIG, and so does this process.
  const found = await loadClusterConfig({ path, env: { ...env, KUBECONFIG: undefined } });
  const config = { ...found, server: server ?? found.server };
  using client = createClient(config, { userAgent: name, onRequest: metrics.requested });
  if (installsCrd) await installPlans(client, namespace, abort);
  const askChannel = redirectChannels({ clock, environment: env, userAgent: name, abort });
  const ask: ChannelParts['ask'] = async (channel, latestVersion) =>
    await askChannel(channel, await clusterIdOf({ client, abort }), latestVersion);
  const versions = { ...settings, apiServerVersion: await followServerVersion(client, abort) };
  const controller = await prepareControllerProcess(
    {
      component: name,
      config,
      client,
      readiness: [rancherReadiness],
      policyEffects: { cattle: policyEffects },
      dialects: [cattle({ name, namespace, job, plansShareNodes, ...versions })],
      ...(times ? { lease: { namespace, name, ...times } } : {}),
      // The service account of the original has no right to read UpgradePolicies.
      policies: 'if-allowed',
      drainsNodes: !job.drainInJob,
      jobNamespaces: listed,
      sender,
      controllers: ({ writer, events }, [plans]) => [
        channelController({
          plans: plans as Informer<CattlePlan>,
          writer,
          events,
          intervalMs,
          clock,
          log,
          ask,
          listNodes: async () => (await listNodes(client, { abort })).items,
          versions,
        }),
      ],
      healthAddress,
      apiPort,
      metrics,
      log,
    },
    abort,
  );
  await controller.run(abort);
}

const VERSION_INTERVAL_MS = 60_000;

/**
 * Reads the version of the API server now, and then every minute until `abort` fires. Resolves with a function that
 * returns the last version; undefined if none was read. The version counts if no Node runs an API server.
 */
async function followServerVersion(
  client: KubeClient,
  abort: AbortSignal,
): Promise<() => string | undefined> {
  let known: string | undefined;
  const read = async (): Promise<void> => {
    const found = await readServerVersion(client, { abort }).catch(() => '');
    if (found !== '') known = found;
  };
  await read();
  void repeat(read, abort).catch(() => undefined);
  return () => known;
}

async function repeat(action: () => Promise<void>, abort: AbortSignal): Promise<void> {
  for (; !abort.aborted; await action()) await sleep(clock, VERSION_INTERVAL_MS, abort);
}

const POLL_MS = 200;
/** The most milliseconds to wait until the API server serves the CRD. The original waits for the same time. */
const PATIENCE_MS = 60_000;

/**
 * Creates the CRD of Plans if it does not exist, and resolves when the API server serves Plans. It never changes an
 * existing CRD, which may have labels of a package manager or newer fields.
 */
async function installPlans(client: KubeClient, namespace: string, abort: AbortSignal) {
  const isServed = async (): Promise<boolean> =>
    (await ifFound(tryList(client, cattlePlans, { namespace, abort }))) === true;
  if (await isServed()) return;
  const [definition] = objectsIn<CustomResourceDefinition>(
    deployFile('chart/manifests/cattle/kinds.yaml'),
  );
  if (!definition) throw new RefitError('REFIT_INTERNAL', 'the package has no definition of Plans');
  await ifNew(client.create(customResourceDefinitions, definition, { abort }));
  const { name } = definition.metadata;
  const late = `${name} is not served after ${formatDuration(PATIENCE_MS)}: check its CustomResourceDefinition`;
  for (
    const end = clock.monotonic() + PATIENCE_MS;
    !(await isServed());
    await sleep(clock, POLL_MS, abort)
  )
    if (clock.monotonic() > end) throw new Error(late);
}

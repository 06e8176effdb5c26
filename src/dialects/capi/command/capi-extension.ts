/** Runs `refit capi-extension`. */

import { join } from 'node:path';
import { type ControllerFlags, senderOf } from '../../../cli/options.ts';
import { VERSION } from '../../../cli/version.ts';
import * as processes from '../../../composition/controller-process.ts';
import { keepHeapSmall } from '../../../composition/small-heap.ts';
import { policyWithin } from '../../../engine/policy/rollout-policy.ts';
import { askControlPlane } from '../../../engine/snapshot/api-server-health.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { loadClusterConfig } from '../../../kube/config/kubeconfig.ts';
import { timesOf } from '../../../kube/election/election.ts';
import { eventRecorder } from '../../../kube/event-recorder.ts';
import { namespaces, secrets } from '../../../kube/resources.ts';
import { describeProblem, ifAllowed, ifNew } from '../../../kube/status-error.ts';
import { createClient } from '../../../kube/transport/http-client.ts';
import { askerOf } from '../../../kube/transport/readyz.ts';
import { createInformer, type Informer } from '../../../kube/watch/informer.ts';
import { createHealthServer } from '../../../runtime/health.ts';
import { createMetrics } from '../../../runtime/metrics.ts';
import { systemClock as clock, sleep } from '../../../util/clock.ts';
import { EXIT, RefitError } from '../../../util/errors.ts';
import { stderrLogger } from '../../../util/log.ts';
import { startExtensionServer } from '../hooks/extension-server.ts';
import { hookService } from '../hooks/hook-service.ts';
import { observed, updaterClient } from '../hooks/updaters/updater-client.ts';
import { capi } from '../plan/capi-dialect.ts';
import { type CareParts, machineCare } from '../plan/machine-care.ts';
import { machineEvents } from '../plan/machine-events.ts';
import { machineOwners, type Rollouts } from '../plan/machine-owners.ts';
import { machineRules } from '../plan/machine-rules.ts';
import { stuckMachines } from '../plan/stuck-machines.ts';
import { fetchText } from '../plan/update-machine.ts';
import * as workload from '../plan/workload-clusters.ts';
import type { ServedCluster } from '../plan/workload-member.ts';
import { effectsOnMachines, policyEffects } from '../policy-effects.ts';

interface ExtensionFlags extends ControllerFlags {
  readonly managementKubeconfig?: string;
  readonly workloadClusters?: string | true;
  readonly rollouts: Rollouts;
  readonly address: string;
  readonly certDir: string;
  readonly clientCa?: string;
  readonly clientName?: readonly string[];
  readonly insecureNoClientAuth?: boolean;
  readonly payloadUrl: string;
  readonly checksumUrl?: string;
  readonly updaterCerts?: string;
  /** The milliseconds within which the extension must answer a call of a hook. */
  readonly callTimeout: number;
  /** The milliseconds after which a stuck Machine is deleted. No Machine is deleted if this is undefined. */
  readonly deleteStuckAfter?: number;
}

const AGAIN_MS = 5000;
/** The Lease is in the cluster that has the Nodes; see deploy/rbac-capi.yaml. */
const LEASE = { namespace: 'refit-system', name: 'refit-capi-extension' };
const LEASE_TITLE = `${LEASE.namespace}/${LEASE.name} in the cluster with the Nodes`;
/** The most milliseconds for a probe of one API server, because the caller of a hook waits for it. */
const ASK_MS = 1000;

/** Runs until `abort` fires. Every replica answers hook calls, but only the leader carries out the upgrades. */
export async function runCapiExtension(flags: ExtensionFlags, abort: AbortSignal): Promise<number> {
  checkClientAuth(flags);
  keepHeapSmall();
  await using started = new AsyncDisposableStack();
  const log = stderrLogger(flags.logLevel);
  const metrics = createMetrics(VERSION);
  const component = 'refit-capi-extension';
  const {
    apiPort,
    certDir,
    healthAddress: address,
    managementKubeconfig: other,
    workloadClusters: where,
  } = flags;
  const policy = policyWithin(flags.targetDeadline);
  const connect = async (path: string | undefined, context?: string) => {
    const config = await loadClusterConfig({ path, context });
    const client = createClient(config, { userAgent: component, onRequest: metrics.requested });
    return { config, client: started.use(client) };
  };
  const { config, client } = await connect(flags.kubeconfig, flags.context);
  const management = other === undefined ? client : (await connect(other)).client;
  const source = { url: flags.payloadUrl, checksumUrl: flags.checksumUrl };
  const callUpdater =
    flags.insecureNoClientAuth === true
      ? undefined
      : observed(updaterClient(flags.updaterCerts), metrics.updaterCalled);
  const lease = { ...LEASE, ...timesOf(flags.leaseDuration) };
  const rulesOf = machineRules(management, log);
  const { jobNamespaces } = flags;
  const shared = {
    management,
    rulesOf,
    lease,
    component,
    policy,
    policyEffects: { capi: flags.rollouts === 'owner' ? policyEffects : effectsOnMachines },
    jobNamespaces,
    sender: senderOf(flags),
    apiPort,
    metrics,
    log,
  };
  const one = oneCluster({ ...shared, config, client });
  const clusters =
    where === undefined ? { ...one, of: () => one } : everyCluster(client, where, shared);
  const events = eventRecorder({ client: management, component, log });
  const tell = machineEvents(management, events, log);
  const replaceStuck = stuckMachines(management, flags.deleteStuckAfter, clock);
  const tools = {
    source,
    readText: fetchText,
    callUpdater,
    replaceStuck,
    owners: machineOwners(management, flags.rollouts, clock),
    rulesOf,
    clock,
    log,
    tell,
  };
  const parts = { management, clusterOf: clusters.of, ...tools };
  const server = await startExtensionServer({
    address: flags.address,
    files: {
      certificate: join(certDir, 'tls.crt'),
      key: join(certDir, 'tls.key'),
      clientAuthority: flags.clientCa,
    },
    clientNames: flags.clientName,
    callTimeoutMs: flags.callTimeout,
    answer: hookService(parts),
    log,
    metrics,
  });
  started.defer(async () => await server.close());
  const health = address === undefined ? undefined : await createHealthServer({ address, metrics });
  log.info('hooks are served', { port: server.address.port });
  await Promise.all([clusters.run(abort), events.run(abort), health?.run(abort)]);
  return EXIT.ok;
}

/** Throws REFIT_USAGE unless the flags say how callers of the hooks are authenticated. */
function checkClientAuth({ clientCa, insecureNoClientAuth }: ExtensionFlags): void {
  if ((clientCa === undefined) === (insecureNoClientAuth === true)) return;
  throw new RefitError(
    'REFIT_USAGE',
    'capi-extension needs either --client-ca or --insecure-no-client-auth',
    {
      hint: 'pass --client-ca with the CA of the managers, because every client that may call the hooks can upgrade nodes',
    },
  );
}

type ProcessOptions = processes.ControllerProcessOptions;
/** The options of a process that are the same for every workload cluster. */
type SharedOptions = Omit<ProcessOptions, 'dialects' | 'config' | 'client'> &
  Required<Pick<ProcessOptions, 'policy' | 'lease' | 'metrics'>> &
  Pick<CareParts, 'management' | 'rulesOf'>;

function oneCluster(
  options: SharedOptions & Pick<ProcessOptions, 'config' | 'client'>,
): ServedCluster {
  let controller: processes.ControllerProcess | undefined;
  const { apiPort, management, rulesOf } = options;
  const controllers = ({ writer }: processes.LeaderTools, plans: readonly Informer[]) =>
    plans.map((seen) => machineCare({ management, writer, seen, rulesOf }));
  const ask = askerOf(options.config);
  let problem: string | undefined = 'the cluster is being connected';
  /**
   * Resolves with the controller process of the cluster. After a failure, it retries and does not end this process,
   * because without its hooks the managers of Cluster API could not start for any of their clusters.
   */
  const prepared = async (abort: AbortSignal): Promise<processes.ControllerProcess> => {
    for (;;) {
      try {
        return await processes.prepareControllerProcess(
          { ...options, dialects: [capi], controllers, nodeRolloutClient: management },
          abort,
        );
      } catch (error) {
        const { code, message } = describeProblem(error);
        // The error may be temporary: an API server that is starting refuses every request, and a proxy without an API
        // server answers with an HTML page.
        if (code === 'REFIT_INTERNAL') throw error;
        problem = message;
        options.log.warn(
          'cannot use the API server of the Nodes: hooks get answers, but updates wait',
          { problem },
        );
        await sleep(clock, AGAIN_MS, abort);
      }
    }
  };
  return {
    workload: options.client,
    policyFor: (node) => controller?.policyFor(capi, node) ?? options.policy,
    seenNode: (name) => controller?.seen(name),
    seenNodes: () => controller?.seenAll() ?? [],
    whyIdle: () =>
      problem ??
      (controller?.leader() === '' ? `no leader: nobody holds Lease ${LEASE_TITLE}` : undefined),
    askApiServers: async (endpoints, abort) =>
      await askControlPlane(
        endpoints,
        async (host) => await ask(host, { port: apiPort, deadlineMs: ASK_MS, abort }),
      ),
    problem: () => problem,
    async run(abort) {
      controller = await prepared(abort);
      problem = undefined;
      await controller.run(abort);
    },
  };
}

/**
 * Serves every workload cluster whose kubeconfig is in a Secret of the management cluster, in one namespace or in all
 * of them.
 */
function everyCluster(management: KubeClient, where: string | true, options: SharedOptions) {
  const { component: userAgent, log, lease, metrics } = options;
  const namespace = where === true ? undefined : where;
  const followed = createInformer(management, secrets, {
    ...workload.KUBECONFIG_SECRETS,
    namespace,
    clock,
    log,
  });
  const serve = (name: string, config: ProcessOptions['config']): ServedCluster => {
    const measures = { ...metrics, ...metrics.ofCluster(name) };
    const client = createClient(config, {
      userAgent,
      onRequest: measures.requested,
      ...workload.CLIENT_LIMITS,
    });
    const sender = { ...options.sender, cluster: name };
    const own = { config, client, sender, metrics: measures, log: log.child({ cluster: name }) };
    const one = oneCluster({ ...options, ...own, policies: 'if-installed' });
    const run = async (abort: AbortSignal): Promise<void> => {
      using ended = new DisposableStack();
      ended.use(client);
      ended.defer(() => metrics.forgetCluster(name));
      // The namespace does not exist yet in a cluster that Cluster API has just created.
      await ifAllowed(
        ifNew(client.create(namespaces, { metadata: { name: lease.namespace } }, { abort })),
      );
      await one.run(abort);
    };
    return { ...one, run };
  };
  const clusters = workload.workloadClusters(followed, serve, { clock, log });
  const run = async (abort: AbortSignal) =>
    await Promise.all([followed.run(abort), clusters.run(abort)]);
  return { of: clusters.of, run };
}

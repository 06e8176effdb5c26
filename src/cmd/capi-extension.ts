/** Runs `refit capi-extension`. */
import { join } from 'node:path';
import type { ControllerFlags } from '../cli/options.ts';
import { VERSION } from '../cli/version.ts';
import { capi } from '../dialects/capi/dialect.ts';
import { startExtensionServer } from '../dialects/capi/extension-server.ts';
import { hookService } from '../dialects/capi/hook-service.ts';
import { fetchText } from '../dialects/capi/update-machine.ts';
import { type CallUpdater, updaterClient } from '../dialects/capi/updaters/updater-client.ts';
import { DEFAULT_POLICY } from '../engine/policy/rollout-policy.ts';
import { loadClusterConfig } from '../kube/config/kubeconfig.ts';
import { timesOf } from '../kube/election/election.ts';
import { createClient } from '../kube/transport/http-client.ts';
import { prepareControllerProcess } from '../process/controller-process.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { systemClock as clock } from '../util/clock.ts';
import { EXIT, RefitError } from '../util/errors.ts';
import { stderrLogger } from '../util/log.ts';

export interface ExtensionFlags extends ControllerFlags {
  /** Of the cluster with the Machines; the other one's if not set. */
  readonly managementKubeconfig?: string;
  /** `host:port`. */
  readonly address: string;
  readonly certDir: string;
  readonly clientCa?: string;
  /** Anybody who reaches the address may call. */
  readonly insecureNoClientAuth?: boolean;
  readonly payloadUrl: string;
  readonly checksumUrl?: string;
  /** The folder with the client certificates for updaters. */
  readonly updaterCerts?: string;
  /** Milliseconds. */
  readonly callTimeout: number;
}

/** In the cluster that has the Nodes; see deploy/rbac-capi.yaml. */
const LEASE = { namespace: 'refit-system', name: 'refit-capi-extension' };

/** Runs until `abort`. Every replica answers hook calls; the leader carries out the upgrades. */
export async function runCapiExtension(flags: ExtensionFlags, abort: AbortSignal): Promise<number> {
  if ((flags.clientCa === undefined) !== (flags.insecureNoClientAuth === true))
    throw new RefitError('REFIT_USAGE', 'capi-extension needs either --client-ca or --insecure-no-client-auth', {
      hint: 'pass --client-ca with the CA of the managers: whoever calls the hooks can upgrade nodes',
    });
  await using started = new AsyncDisposableStack();
  const log = stderrLogger(flags.logLevel);
  const metrics = createMetrics(VERSION);
  const component = 'refit-capi-extension';
  const policy = { ...DEFAULT_POLICY, targetDeadlineMs: flags.targetDeadline };
  const connect = async (path: string | undefined, context: string | undefined) => {
    const config = await loadClusterConfig({ path, context });
    const client = createClient(config, { userAgent: component, onRequest: metrics.requested });
    return { config, client: started.use(client) };
  };
  const { config, client } = await connect(flags.kubeconfig, flags.context);
  const management = flags.managementKubeconfig
    ? (await connect(flags.managementKubeconfig, undefined)).client
    : client;
  const controller = await prepareControllerProcess(
    {
      dialects: [capi],
      config,
      client,
      lease: { ...LEASE, ...timesOf(flags.leaseDuration) },
      component,
      policy,
      apiPort: flags.apiPort,
      healthAddress: flags.healthAddress,
      metrics,
      log,
    },
    abort,
  );
  const source = { url: flags.payloadUrl, checksumUrl: flags.checksumUrl };
  const callUpdater = flags.insecureNoClientAuth === true ? callNobody : updaterClient(flags.updaterCerts);
  const server = await startExtensionServer({
    address: flags.address,
    files: {
      certificate: join(flags.certDir, 'tls.crt'),
      key: join(flags.certDir, 'tls.key'),
      clientAuthority: flags.clientCa,
    },
    callTimeoutMs: flags.callTimeout,
    answer: hookService({ management, workload: client, source, readText: fetchText, callUpdater, policy, clock, log }),
    log,
  });
  started.defer(async () => await server.close());
  log.info('hooks are served', { port: server.address.port });
  await controller.run(abort);
  return EXIT.ok;
}

/** Otherwise anybody could have Refit send its own text to an updater, with Refit's certificate. */
const callNobody: CallUpdater = async () =>
  await Promise.reject(new Error('updaters are only called with --client-ca, not with --insecure-no-client-auth'));

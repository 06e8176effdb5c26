/** Runs `refit controller`. */

import { plans } from '../../../api/autopilot/plan.ts';
import { updateConfigs } from '../../../api/autopilot/update-config.ts';
import type { ReversibleDialect } from '../../../cli/contract/roll-back.ts';
import { type ControllerFlags, senderOf } from '../../../cli/options.ts';
import { VERSION } from '../../../cli/version.ts';
import {
  type ControllerProcessOptions,
  type LeaderTools,
  prepareControllerProcess,
} from '../../../composition/controller-process.ts';
import { keepHeapSmall } from '../../../composition/small-heap.ts';
import { checkTraceSettings } from '../../../composition/trace-exporter.ts';
import type { Role } from '../../../engine/model/rollout.ts';
import { DEFAULT_POLICY } from '../../../engine/policy/rollout-policy.ts';
import type { Environment } from '../../../http/proxy-choice.ts';
import { loadClusterConfig } from '../../../kube/config/kubeconfig.ts';
import { timesOf } from '../../../kube/election/election.ts';
import { isForbidden, isNotFound } from '../../../kube/status-error.ts';
import { createRoamingClient } from '../../../kube/transport/roaming-client.ts';
import { tryList } from '../../../kube/try-list.ts';
import { createMetrics } from '../../../runtime/metrics.ts';
import type { Controller } from '../../../runtime/run-controller.ts';
import { CENTRAL_CORDONING_LABEL } from '../../../signal/names.ts';
import type { ClusterInfo } from '../../../updates/channel/cluster-headers.ts';
import { updateController } from '../../../updates/update-config-controller.ts';
import type { UpdateParts } from '../../../updates/update-follower.ts';
import { systemClock as clock } from '../../../util/clock.ts';
import { parseGoDuration } from '../../../util/duration.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { type Logger, stderrLogger } from '../../../util/log.ts';
import { ownMember } from '../../../util/own-member.ts';
import { LEADER_LEASE } from '../leader-lease.ts';
import { autopilot } from '../plan/autopilot-dialect.ts';
import { targetProblems } from '../plan/problems.ts';
import { k0sReadiness } from '../plan/readiness.ts';
import { phaseOfPlan } from '../plan/states.ts';
import { policyEffects } from '../policy-effects.ts';

interface UpdateFlags extends ControllerFlags {
  readonly applyCrds?: boolean;
  readonly insecureUpdates?: boolean;
  readonly clusterInfo?: ClusterInfo;
  readonly excludeFromPlans?: readonly Role[];
  readonly uiAddress?: string;
  readonly uiCertDir?: string;
  readonly uiHost?: readonly string[];
  readonly uiTokenHeader?: string;
  readonly uiTrustedProxy?: readonly string[];
}

/**
 * Runs until `abort`. Rejects at once if an option or an environment variable is wrong, even if the API server does not
 * answer. Also rejects at once if the API server cannot be reached, or if a kind or right that Refit needs is missing.
 */
export async function runController(
  flags: UpdateFlags,
  abort: AbortSignal,
  modules: readonly ReversibleDialect[],
): Promise<void> {
  keepHeapSmall();
  const metrics = createMetrics(VERSION);
  const component = 'refit-controller';
  const log = stderrLogger(flags.logLevel);
  const dashboard = await dashboardIn(flags, modules, log);
  const probing = probingIn(process.env);
  checkTraceSettings(process.env);
  const config = await loadClusterConfig({ path: flags.kubeconfig, context: flags.context });
  using client = createRoamingClient(config, {
    userAgent: component,
    onRequest: metrics.requested,
  });
  if (flags.applyCrds === true) {
    const { applyDefinitions } = await import('../../../install/apply-definitions.ts');
    await applyDefinitions({ client, version: VERSION, clock, log, abort });
  }
  const labels = (identity: string) => ({ [CENTRAL_CORDONING_LABEL]: identity });
  const updates = await prepareUpdates({ ...flags, ...probing }, { client, metrics, log }, abort);
  const controller = await prepareControllerProcess(
    {
      component,
      config,
      client,
      readiness: [k0sReadiness],
      policyEffects: { autopilot: policyEffects },
      dialects: [autopilot],
      controllers: updates,
      lease: { ...LEADER_LEASE, ...timesOf(flags.leaseDuration), labels },
      policy: { ...DEFAULT_POLICY, targetDeadlineMs: flags.targetDeadline },
      ...(flags.excludeFromPlans ? { excludedRoles: flags.excludeFromPlans } : {}),
      jobNamespaces: flags.jobNamespaces,
      sender: senderOf(flags),
      apiPort: flags.apiPort,
      healthAddress: flags.healthAddress,
      ...dashboard,
      metrics,
      clock,
      log,
    },
    abort,
  );
  await controller.run(abort);
}

/**
 * Returns the server of the dashboard as a part of the process; nothing without --ui-address. Its code is loaded only if the flag is set.
 * Rejects if an option of the dashboard is wrong.
 */
async function dashboardIn(
  flags: UpdateFlags,
  modules: readonly ReversibleDialect[],
  log: Logger,
): Promise<Pick<ControllerProcessOptions, 'serve'>> {
  const { uiAddress: address, uiCertDir: certificates, uiHost: names = [] } = flags;
  const { uiTokenHeader: tokenHeader, uiTrustedProxy: trustedProxies } = flags;
  if (address === undefined) {
    const [useless] =
      Object.entries({
        '--ui-cert-dir': certificates,
        '--ui-host': flags.uiHost,
        '--ui-token-header': tokenHeader,
        '--ui-trusted-proxy': trustedProxies,
      }).find(([, value]) => value !== undefined) ?? [];
    if (useless === undefined) return {};
    throw new RefitError('REFIT_USAGE', `${useless} needs --ui-address`);
  }
  const { checkServedOptions } = await import('../../../cli/served-dashboard/server.ts');
  await checkServedOptions({ address, certificates, tokenHeader, trustedProxies });
  const { kubeconfig, context, apiPort } = flags;
  const connection = { kubeconfig, context, ...(apiPort === undefined ? {} : { apiPort }) };
  return {
    serve: async () => {
      const [{ serveForViewers }, { uiFiles }] = await Promise.all([
        import('../../../cli/served-dashboard/server.ts'),
        import('../../../cli/dashboard/bundle.ts'),
      ]);
      const files = await uiFiles();
      return await serveForViewers({
        address,
        certificates,
        names,
        tokenHeader,
        trustedProxies,
        connection,
        modules,
        cluster: flags.clusterName,
        files,
        clock,
        log,
      });
    },
  };
}

/**
 * Returns the controller for automatic updates. Returns no controller if the cluster does not have the kind
 * UpdateConfig, or if Refit may not read it.
 */
async function prepareUpdates(
  { insecureUpdates = false, clusterInfo, periodMs, probe }: UpdateFlags & Probing,
  tools: Pick<UpdateParts, 'client' | 'metrics' | 'log'>,
  abort: AbortSignal,
): Promise<(leader: LeaderTools) => readonly Controller[]> {
  const { env: environment } = process;
  // An API server that has just started may deny every request. This request retries until the API server allows it, so
  // that automatic updates are not switched off by mistake.
  await tryList(tools.client, plans, { abort });
  try {
    await tryList(tools.client, updateConfigs, { abort });
  } catch (error) {
    if (!isNotFound(error) && !isForbidden(error)) throw error;
    tools.log.warn('automatic updates are off', { problem: messageOf(error) });
    return () => [];
  }
  const own = {
    clock,
    random: Math.random,
    environment,
    userAgent: `refit/${VERSION}`,
    clusterInfo,
    periodMs,
  };
  const rules = { phaseOf: phaseOfPlan, targetProblems, allowInsecure: insecureUpdates };
  return ({ writer, events }) => [
    updateController({ ...tools, ...own, ...rules, writer, events, probe }),
  ];
}

/** How often Refit sends requests to update servers. */
interface Probing {
  readonly periodMs: number;
  readonly probe: UpdateParts['probe'];
}

/** Reads the environment variables of k0s about update servers. Throws REFIT_USAGE if one is wrong. */
function probingIn(environment: Environment): Probing {
  const periodMs = intervalIn(environment, 'K0S_UPDATE_PERIOD', 10 * 60_000);
  const intervalMs = intervalIn(environment, 'K0S_UPDATE_CHECK_INTERVAL', 30 * 60_000);
  const server = environment['K0S_UPDATE_SERVER']?.replace(/(?<!\/)\/+$/, '');
  return { periodMs, probe: server ? { server, intervalMs } : undefined };
}

/**
 * Returns the milliseconds of an environment variable of k0s, whose value is a Go duration; `otherwise` if the variable
 * is not set. Throws REFIT_USAGE if the value is wrong.
 */
function intervalIn(environment: Environment, name: string, otherwise: number): number {
  const text = ownMember(environment, name);
  if (!text) return otherwise;
  const ms = (parseGoDuration(text) ?? 0) / 1e6;
  if (ms >= 100) return ms;
  throw new RefitError('REFIT_USAGE', `${name} is "${text}"; use a duration such as 10m`);
}

/** Makes the monitor of health checks of a process that carries out plans. */
import { type AskReadyFor, checkAsker } from '../health/ask-check.ts';
import { createHealthMonitor, type HealthMonitor } from '../health/monitor.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ClusterConfig } from '../kube/config/cluster-config.ts';
import type { TemplateJobs } from '../kube/template-jobs.ts';
import type { DialectReadiness } from '../ready/context.ts';
import type { Clock } from '../util/clock.ts';
import { homeOf } from './own-namespaces.ts';
import { readinessAsker } from './readiness-asker.ts';

interface MonitorParts {
  readonly config: ClusterConfig;
  readonly client: KubeClient;
  /** The client for Jobs of health checks. */
  readonly writer: KubeClient;
  readonly templates: TemplateJobs;
  readonly clock: Clock;
  readonly apiPort?: number | undefined;
  /** Undefined if each node has a plan of its own. */
  readonly readiness?: readonly DialectReadiness[] | undefined;
}

export function healthMonitorOf(parts: MonitorParts, abort: AbortSignal): HealthMonitor {
  const { config, writer: client, templates, clock } = parts;
  const asking = { client, templates, clock, namespace: homeOf(config), environment: process.env };
  return createHealthMonitor(clock, checkAsker(asking, readyAskerFor(parts, abort)));
}

/** Returns the function that answers whether the cluster is ready for a version. */
function readyAskerFor(parts: MonitorParts, abort: AbortSignal): AskReadyFor {
  const { config, client, readiness: dialects, apiPort, clock } = parts;
  if (dialects === undefined)
    return () => ({
      state: 'passing',
      message: 'no run has a beginning, because each node has a plan of its own',
    });
  const namespace = homeOf(config);
  const environment = process.env;
  return readinessAsker({
    client,
    clock,
    abort,
    config,
    dialects,
    apiPort,
    namespace,
    environment,
  });
}

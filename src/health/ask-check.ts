/** Performs one health check of any kind. */
import type { KubeClient } from '../kube/client.ts';
import type { TemplateJobs } from '../kube/template-jobs.ts';
import type { MonotonicClock } from '../util/clock.ts';
import { askAlerts } from './ask-alerts.ts';
import { askDaemonSets } from './ask-daemon-sets.ts';
import { askHttp } from './ask-http.ts';
import { askJobs } from './ask-jobs.ts';
import { askMetrics } from './ask-metrics.ts';
import { askResources } from './ask-resources.ts';
import type { CheckTools } from './ask-server.ts';
import type { CheckFinding, HealthCheck, JobCheck, ReadinessCheck } from './checks.ts';
import type { AskCheck } from './monitor.ts';

export interface AskParts extends CheckTools {
  readonly client: KubeClient;
  readonly templates: TemplateJobs;
  readonly clock: MonotonicClock;
}

/** A check that asks one question and creates nothing. */
export type ReadingCheck = Exclude<HealthCheck, JobCheck | ReadinessCheck>;

/** Performs a check that creates nothing. Rejects if a server gives no usable answer. */
export type AskReading = (
  check: ReadingCheck,
  nodes: ReadonlySet<string>,
  abort: AbortSignal,
) => Promise<CheckFinding>;

/** Returns the function that performs checks that create nothing. */
export function readingAsker(parts: Omit<AskParts, 'templates'>): AskReading {
  const { client, clock } = parts;
  return async (check, nodes, abort) => {
    switch (check.kind) {
      case 'daemonSets':
        return await askDaemonSets(client, check, nodes, abort);
      case 'resources':
        return await askResources(client, check, abort, { clock });
      case 'http':
        return await askHttp(check, parts, abort);
      case 'metrics':
        return await askMetrics(check, parts, abort);
      case 'alerts':
        return await askAlerts(check, parts, abort);
    }
  };
}

/** Answers whether the cluster is ready for a version. The answer comes at once, and may say that it is not known yet. */
export type AskReadyFor = (check: ReadinessCheck) => CheckFinding;

/** Returns the function that performs checks. */
export function checkAsker(parts: AskParts, askReadyFor: AskReadyFor): AskCheck {
  const askReading = readingAsker(parts);
  return async (check, nodes, abort, need): Promise<CheckFinding> => {
    if (check.kind === 'jobs') return await askJobs(parts, check, need, abort);
    if (check.kind === 'readiness') return askReadyFor(check);
    return await askReading(check, nodes, abort);
  };
}

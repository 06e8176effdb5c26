/** Owns `refit controller`: names everything that this process starts. */
import type { ControllerFlags } from '../cli/options.ts';
import { CONTROLLER_DIALECTS, LEADER_LEASE } from '../dialects/registry.ts';
import { DEFAULT_POLICY } from '../engine/policy/rollout-policy.ts';
import { loadClusterConfig } from '../kube/config/kubeconfig.ts';
import { createClient } from '../kube/transport/http-client.ts';
import { boundHeapGrowth } from '../runtime/heap-growth.ts';
import { pinoLogger } from '../runtime/log-pino.ts';
import { prometheusMetrics } from '../runtime/metrics-prometheus.ts';
import { CENTRAL_CORDONING_LABEL } from '../signal/names.ts';
import { EXIT } from '../util/errors.ts';
import { prepareRollouts } from './rollouts.ts';

/** Runs until `signal` aborts. Rejects at once where the API server cannot be reached or lacks what Refit needs. */
export async function runController(flags: ControllerFlags, abort: AbortSignal): Promise<number> {
  boundHeapGrowth();
  const log = pinoLogger(flags.logLevel);
  const metrics = prometheusMetrics();
  const config = await loadClusterConfig({ path: flags.kubeconfig, context: flags.context });
  const component = 'refit-controller';
  const client = createClient(config, { userAgent: component, onRequest: (record) => metrics.requested(record) });
  try {
    const manager = await prepareRollouts(
      {
        dialects: CONTROLLER_DIALECTS,
        config,
        client,
        lease: LEADER_LEASE,
        leaseLabels: (identity) => ({ [CENTRAL_CORDONING_LABEL]: identity }),
        leaseDurationMs: flags.leaseDuration,
        component,
        policy: { ...DEFAULT_POLICY, targetDeadlineMs: flags.targetDeadline },
        apiPort: flags.apiPort,
        healthAddress: flags.healthAddress,
        metrics,
        log,
      },
      abort,
    );
    await manager.run(abort);
    return EXIT.ok;
  } finally {
    client.close();
  }
}

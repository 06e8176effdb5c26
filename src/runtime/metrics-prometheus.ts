/** Owns the Metrics of a real process: kept by prom-client, exposed in Prometheus' text format. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Metrics } from './metrics.ts';
import { planMetrics } from './metrics-of-plans.ts';

/** Seconds; from a decision in memory to a reconcile that runs into its deadline. */
const RECONCILE_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60];
const REQUEST_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30];

/** One for each process: what the process itself uses (memory, event loop) is in it too. */
export function prometheusMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const reconciles = new Histogram({
    name: 'refit_reconcile_duration_seconds',
    help: 'Time of one reconcile by controller and outcome (success, requeue, error, terminal).',
    labelNames: ['controller', 'outcome'],
    buckets: RECONCILE_BUCKETS,
    registers,
  });
  const depth = new Gauge({
    name: 'refit_queue_depth',
    help: 'Keys that wait for a worker.',
    labelNames: ['controller'],
    registers,
  });
  const requests = new Counter({
    name: 'refit_api_requests_total',
    help: 'Attempts at the API server by verb, resource and status code; code 0 where no answer came.',
    labelNames: ['verb', 'resource', 'code'],
    registers,
  });
  const latency = new Histogram({
    name: 'refit_api_request_duration_seconds',
    help: 'Time until the head of the answer.',
    labelNames: ['verb', 'resource'],
    buckets: REQUEST_BUCKETS,
    registers,
  });
  const plans = planMetrics(registers);
  const leading = new Gauge({ name: 'refit_leading', help: '1 while this process holds the lease.', registers });
  return {
    reconciled: (controller, outcome, seconds) => reconciles.observe({ controller, outcome }, seconds),
    queueDepth: (controller, keys) => depth.set({ controller }, keys),
    requested: ({ verb, resource, code, ms }) => {
      requests.inc({ verb, resource, code });
      latency.observe({ verb, resource }, ms / 1000);
    },
    leading: (now) => leading.set(now ? 1 : 0),
    ...plans,
    expose: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

/** Defines every metric of a process, and the methods that record them. */
import { setImmediate } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { RequestRecord } from '../kube/transport/call-sender.ts';
import {
  createExemplars,
  type Exemplars,
  type MetricFamily,
  OPENMETRICS_END,
  OPENMETRICS_TYPE,
  openMetricsHead,
  openMetricsSamples,
  wantsOpenMetrics,
} from './openmetrics.ts';

export type ReconcileOutcome = 'success' | 'requeue' | 'error';

/** The values of the metrics of one plan. */
export interface PlanMeasure {
  readonly dialect: string;
  /** `namespace/name`, or the name alone. */
  readonly plan: string;
  /** All phases of a rollout. The value is 1 for the present phase of the plan, and 0 for every other phase. */
  readonly phases: Readonly<Record<string, number>>;
  /** The number of targets in each phase of a target. */
  readonly targets: Readonly<Record<string, number>>;
  readonly waits: readonly { readonly gate: string; readonly reason: string }[];
  /** The health checks of the policy with their states. */
  readonly checks?: readonly { readonly check: string; readonly state: string }[] | undefined;
  /** The share of targets that are done, from 0 to 100. */
  readonly percent: number;
  /** Seconds until the plan is expected to be done; undefined if that is unknown. */
  readonly etaSeconds?: number | undefined;
}

/** Measures the controllers of a process. */
interface WorkMetrics {
  leading(lease: string, isLeading: boolean): void;
  queueDepth(controller: string, keys: number): void;
  reconciled(controller: string, outcome: ReconcileOutcome, seconds: number): void;
}

/** Measures requests to API servers, hooks and updaters. */
interface RequestMetrics {
  /** The function has the type of `ClientOptions.onRequest`. */
  readonly requested: (record: RequestRecord) => void;
  readonly hookCalled: (hook: string, outcome: string, ms: number) => void;
  readonly updaterCalled: (labels: UpdaterLabels, ms: number) => void;
  /** Counts a message to a receiver that was sent or that failed, or a notification that was dropped. */
  readonly notified: (receiver: string, outcome: 'sent' | 'failed' | 'dropped') => void;
  /** Replaces the number of silences that the leader has on this Alertmanager. */
  readonly silenced: (server: string, count: number) => void;
  readonly silenceFailed: (server: string) => void;
  /** Removes the numbers of silences, because only the leader knows them. */
  readonly forgetSilences: () => void;
  /** Counts spans of traces that the collector has accepted or rejected, or that were dropped. */
  readonly spansEnded: (outcome: 'sent' | 'rejected' | 'dropped', count: number) => void;
}

export interface UpdaterLabels {
  readonly updater: string;
  readonly hook: string;
  readonly outcome: string;
}

/** Identifies the span of a trace that shows the measured work. */
export interface SpanReference {
  readonly traceId: string;
  readonly spanId: string;
}

/** Measures plans and their targets. */
interface PlanMetrics {
  /** Replaces the last measure of the plan. */
  plan(measure: PlanMeasure): void;
  forgetPlan(dialect: string, plan: string): void;
  /** Removes the measures of all plans, because only the leader knows them. */
  forgetPlans(): void;
  /** `span` becomes the exemplar of the bucket that counts the step. */
  stepDone(dialect: string, step: string, seconds: number, span?: SpanReference): void;
  /** Counts a roll-back that the leader began because the policy demands it. */
  rolledBack(dialect: string, plan: string): void;
}

/** Measures UpdateConfigs, and the update server. */
interface UpdateMetrics {
  update(config: string, reason: string, current: string, available: string): void;
  updateChecked(config: string, atSeconds: number, isFailed: boolean): void;
  served(code: number, bytes: number): void;
  /**
   * Removes the measures of UpdateConfigs that are not in `configs`. It also removes the time of the
   * last check of all configs except `asked`.
   */
  keepUpdates(configs: readonly string[], asked?: string): void;
}

/** The measures of a process, or of one workload cluster. */
export interface Measures extends WorkMetrics, RequestMetrics, PlanMetrics, UpdateMetrics {}

export interface Metrics extends Measures {
  /**
   * Returns metrics with the same names and the label `workload_cluster`. They start at zero and are
   * exposed until `forgetCluster`.
   */
  ofCluster(name: string): Measures;
  forgetCluster(name: string): void;
  /** From now on, scrapers that ask for OpenMetrics get it, with exemplars. Without traces there are no exemplars. */
  offerExemplars(): void;
  /**
   * Returns the text for a scrape with this header `Accept`. Concurrent scrapes of one format share
   * one text.
   */
  expose(accept?: string): Promise<{ readonly contentType: string; readonly body: string }>;
}

/**
 * The buckets in seconds. The smallest is for a decision in memory, the largest for a reconcile that reaches its
 * deadline.
 */
const REQUEST_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30];
/** The buckets in seconds. The smallest is for a cordon, the largest for a download over a slow network. */
const STEP_BUCKETS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21_600];

/** The states of a health check. */
const CHECK_STATES = ['passing', 'failing', 'unknown'];

/** The metrics of the process, or of one workload cluster. */
interface Store {
  readonly registry: Registry;
  readonly exemplars: Exemplars;
}

/** Defines metrics in one registry. Each name may be defined once. */
interface Define {
  readonly gauge: <L extends string>(name: string, help: string, ...labelNames: L[]) => Gauge<L>;
  readonly counter: <L extends string>(
    name: string,
    help: string,
    ...labelNames: L[]
  ) => Counter<L>;
  readonly histogram: <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: L[]
  ) => Histogram<L>;
  /** Keeps the exemplar of a series of a histogram or counter. It replaces the previous exemplar of the series. */
  readonly keepExemplar: Exemplars['keep'];
}

function definitions({ registry, exemplars }: Store): Define {
  const registers = [registry];
  return {
    gauge: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Gauge<L>({ name, help, labelNames, registers }),
    counter: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Counter<L>({ name, help, labelNames, registers }),
    histogram: <L extends string>(
      name: string,
      help: string,
      buckets: number[],
      ...labelNames: L[]
    ) => new Histogram<L>({ name, help, buckets, labelNames, registers }),
    keepExemplar: (series, labels, exemplar) => exemplars.keep(series, labels, exemplar),
  };
}

/**
 * Creates the metrics. Metrics without the prefix `refit_` have the same names and the same meaning as in client-go. If
 * `version` is set, the process itself is measured, too.
 */
export function createMetrics(version?: string): Metrics {
  const own: Store = { registry: new Registry(), exemplars: createExemplars() };
  const { registry } = own;
  const clusters = new Map<string, Store>();
  let hasExemplars = false;
  const prometheus = shared(async () => await textOf(own, clusters));
  const openMetrics = shared(async () => await openMetricsOf(own, clusters));
  const define = definitions(own);
  const build = define.gauge(
    'refit_build_info',
    '1, labelled with the version of Refit.',
    'version',
  );
  if (version !== undefined) {
    build.set({ version }, 1);
    collectDefaultMetrics({ register: registry });
  }
  return {
    ...measuresIn(define),
    ofCluster(name) {
      const store = { registry: new Registry(), exemplars: createExemplars() };
      store.registry.setDefaultLabels({ workload_cluster: name });
      clusters.set(name, store);
      return measuresIn(definitions(store));
    },
    forgetCluster: (name) => void clusters.delete(name),
    offerExemplars() {
      hasExemplars = true;
    },
    async expose(accept = '') {
      if (hasExemplars && wantsOpenMetrics(accept))
        return { contentType: OPENMETRICS_TYPE, body: await openMetrics() };
      return { contentType: registry.contentType, body: await prometheus() };
    },
  };
}

/**
 * Returns a function that calls `make`. If an earlier call is still running, a new call gets the result of that earlier
 * call.
 */
function shared(make: () => Promise<string>): () => Promise<string> {
  let making: Promise<string> | undefined;
  return async () => {
    making ??= make().finally(() => {
      making = undefined;
    });
    return await making;
  };
}

/**
 * Returns the text of all metrics, with the samples of one metric together. Other work of the
 * process can run in between.
 */
async function textOf({ registry }: Store, clusters: ReadonlyMap<string, Store>): Promise<string> {
  const texts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name));
    for (const { registry: each } of clusters.values()) {
      if (!each.getSingleMetric(name)) continue;
      const [, , ...samples] = (await each.getSingleMetricAsString(name)).split('\n');
      if (samples.length > 0) texts.push(samples.join('\n'));
      await setImmediate();
    }
  }
  return `${texts.join('\n')}\n`;
}

/** Returns the same samples as `textOf`, as OpenMetrics. */
async function openMetricsOf(own: Store, clusters: ReadonlyMap<string, Store>): Promise<string> {
  const texts: string[] = [];
  const names = new Set(own.registry.getMetricsAsArray().map(({ name }) => name));
  for (const name of names) {
    const family = await familyIn(own, name);
    if (!family) continue;
    texts.push(openMetricsHead(family, names), openMetricsSamples(family, own.exemplars));
    for (const [cluster, store] of clusters) {
      const more = { workload_cluster: cluster };
      const found = await familyIn(store, name);
      if (found) texts.push(openMetricsSamples(found, store.exemplars, more));
      await setImmediate();
    }
  }
  return `${texts.join('')}${OPENMETRICS_END}`;
}

/** The TypeScript types of prom-client declare the type of a metric as a number, but its value is a text. */
async function familyIn({ registry }: Store, name: string): Promise<MetricFamily | undefined> {
  const family: unknown = await registry.getSingleMetric(name)?.get();
  return family as MetricFamily | undefined;
}

function measuresIn(define: Define): Measures {
  return {
    ...workMetrics(define),
    ...requestMetrics(define),
    ...planMetrics(define),
    ...updateMetrics(define),
  };
}

function workMetrics({ gauge, counter, histogram }: Define): WorkMetrics {
  const leading = gauge(
    'leader_election_master_status',
    '1 while this process holds the lease `name`.',
    'name',
  );
  const depth = gauge(
    'workqueue_depth',
    'Keys that wait for a worker of controller `name`.',
    'name',
  );
  const retries = counter(
    'workqueue_retries_total',
    'Failed reconciles that controller `name` retries.',
    'name',
  );
  const took = 'Time of one reconcile by controller and outcome (success, requeue, error).';
  const buckets = [...REQUEST_BUCKETS, 60];
  const reconciles = histogram(
    'refit_reconcile_duration_seconds',
    took,
    buckets,
    'controller',
    'outcome',
  );
  return {
    leading: (lease, isLeading) => leading.set({ name: lease }, isLeading ? 1 : 0),
    queueDepth: (name, keys) => depth.set({ name }, keys),
    reconciled: (controller, outcome, seconds) => {
      reconciles.observe({ controller, outcome }, seconds);
      if (outcome === 'error') retries.inc({ name: controller });
    },
  };
}

function requestMetrics({ gauge, counter, histogram }: Define): RequestMetrics {
  const sent =
    'Requests to the API server by status code, method and host; code `<error>` if no answer came.';
  const requests = counter(
    'rest_client_requests_total',
    sent,
    'code',
    'method',
    'host',
    'resource',
  );
  const took = 'Time until the headers of the answer have arrived.';
  const latency = histogram(
    'refit_api_request_duration_seconds',
    took,
    REQUEST_BUCKETS,
    'verb',
    'resource',
  );
  const help =
    'Time of one hook call of Cluster API by outcome: Success, Failure, or the HTTP status of a refusal.';
  const calls = histogram('refit_hook_duration_seconds', help, REQUEST_BUCKETS, 'hook', 'outcome');
  const asked =
    'Time of one call of an updater by outcome: Success, Failure, or `<error>` if no valid answer came.';
  const updaters = histogram(
    'refit_updater_duration_seconds',
    asked,
    REQUEST_BUCKETS,
    'updater',
    'hook',
    'outcome',
  );
  const messages = counter(
    'refit_notifications_total',
    'Messages to receivers of policies by outcome: sent, failed; and dropped notifications, which were tried for 6h.',
    'receiver',
    'outcome',
  );
  const spans = counter(
    'refit_trace_spans_total',
    'Spans of traces by outcome: sent; rejected by the collector; dropped, because it did not answer for 5 minutes.',
    'outcome',
  );
  const silences = gauge(
    'refit_silences',
    'Silences for nodes in progress that the leader has on Alertmanager `server`.',
    'server',
  );
  const unsilenced = counter(
    'refit_silence_failed_requests_total',
    'Requests about silences that Alertmanager `server` did not answer, or refused.',
    'server',
  );
  return {
    silenced: (server, count) => {
      silences.set({ server }, count);
      // A series must begin at zero, because otherwise the Prometheus function `increase()` misses the first failure.
      unsilenced.inc({ server }, 0);
    },
    silenceFailed: (server) => unsilenced.inc({ server }),
    forgetSilences: () => silences.reset(),
    spansEnded: (outcome, count) => spans.inc({ outcome }, count),
    notified: (receiver, outcome) => messages.inc({ receiver, outcome }),
    updaterCalled: (labels, ms) => updaters.observe({ ...labels }, ms / 1000),
    hookCalled: (hook, outcome, ms) => calls.observe({ hook, outcome }, ms / 1000),
    requested: ({ verb, method, host, resource, code, ms }) => {
      requests.inc({ code: code === 0 ? '<error>' : code, method, host, resource });
      latency.observe({ verb, resource }, ms / 1000);
    },
  };
}

function planMetrics({ gauge, counter, histogram, keepExemplar }: Define): PlanMetrics {
  const phases = gauge(
    'refit_plans',
    '1 for the phase of the plan, 0 for the others.',
    'dialect',
    'plan',
    'phase',
  );
  const targets = gauge(
    'refit_targets',
    'Targets of the plan by phase.',
    'dialect',
    'plan',
    'phase',
  );
  const help = 'What targets of the plan wait for, by gate and reason.';
  const waits = gauge('refit_waits', help, 'dialect', 'plan', 'gate', 'reason');
  const found = '1 for the state of the health check, 0 for the other states.';
  const health = gauge('refit_health_check', found, 'dialect', 'plan', 'check', 'state');
  const share = 'Targets of the plan that are done, in percent of all its targets.';
  const percent = gauge('refit_plan_percent', share, 'dialect', 'plan');
  const left = 'Seconds until the plan is expected to be done; absent while that is unknown.';
  const eta = gauge('refit_plan_eta_seconds', left, 'dialect', 'plan');
  const spent = 'Time that one target spent in one step.';
  const name = 'refit_step_duration_seconds';
  const steps = histogram(name, spent, STEP_BUCKETS, 'dialect', 'step');
  const back = 'Roll-backs of the plan that the leader began because of `onFailure: RollBack`.';
  const rollBacks = counter('refit_roll_backs_total', back, 'dialect', 'plan');
  const measured = new Map<string, PlanMeasure>();
  const forgetPlan = (dialect: string, plan: string): void => {
    const before = measured.get(`${dialect} ${plan}`);
    if (!before) return;
    measured.delete(`${dialect} ${plan}`);
    for (const phase of Object.keys(before.phases)) phases.remove({ dialect, plan, phase });
    for (const phase of Object.keys(before.targets)) targets.remove({ dialect, plan, phase });
    for (const wait of before.waits) waits.remove({ dialect, plan, ...wait });
    for (const { check } of before.checks ?? [])
      for (const state of CHECK_STATES) health.remove({ dialect, plan, check, state });
    percent.remove({ dialect, plan });
    eta.remove({ dialect, plan });
  };
  return {
    forgetPlan,
    rolledBack: (dialect, plan) => rollBacks.inc({ dialect, plan }),
    forgetPlans: () => measured.forEach(({ dialect, plan }) => forgetPlan(dialect, plan)),
    plan: (measure) => {
      const { dialect, plan } = measure;
      forgetPlan(dialect, plan);
      measured.set(`${dialect} ${plan}`, measure);
      for (const [phase, is] of Object.entries(measure.phases))
        phases.set({ dialect, plan, phase }, is);
      for (const [phase, count] of Object.entries(measure.targets))
        targets.set({ dialect, plan, phase }, count);
      for (const wait of measure.waits) waits.inc({ dialect, plan, ...wait });
      for (const { check, state: is } of measure.checks ?? [])
        for (const state of CHECK_STATES)
          health.set({ dialect, plan, check, state }, state === is ? 1 : 0);
      percent.set({ dialect, plan }, measure.percent);
      if (measure.etaSeconds !== undefined) eta.set({ dialect, plan }, measure.etaSeconds);
    },
    stepDone: (dialect, step, seconds, span) => {
      steps.observe({ dialect, step }, seconds);
      if (span === undefined) return;
      const le = STEP_BUCKETS.find((bound) => seconds <= bound) ?? '+Inf';
      const labelSet = { trace_id: span.traceId, span_id: span.spanId };
      const exemplar = { labelSet, value: seconds, timestamp: Date.now() / 1000 };
      keepExemplar(`${name}_bucket`, { le, dialect, step }, exemplar);
    },
  };
}

function updateMetrics({ gauge, counter }: Define): UpdateMetrics {
  const help =
    '1 for each UpdateConfig, with what runs, what its channel offers, and why that is not installed.';
  const states = gauge('refit_update_info', help, 'config', 'reason', 'current', 'available');
  const checked = gauge(
    'refit_update_last_check_timestamp_seconds',
    'Time of the last request to the channel, in seconds since the Unix epoch.',
    'config',
  );
  const unanswered = 'Requests that the update server did not answer.';
  const failed = counter('refit_update_failed_checks_total', unanswered, 'config');
  const requests = counter(
    'refit_served_requests_total',
    'Answers of `refit serve` by status code.',
    'code',
  );
  const bytes = counter('refit_served_bytes_total', 'Bytes that `refit serve` sent.');
  const shown = new Map<string, { reason: string; current: string; available: string }>();
  const forget = (config: string): void => {
    const before = shown.get(config);
    if (before) states.remove({ config, ...before });
    shown.delete(config);
  };
  return {
    update: (config, reason, current, available) => {
      forget(config);
      shown.set(config, { reason, current, available });
      states.set({ config, reason, current, available }, 1);
    },
    updateChecked: (config, atSeconds, isFailed) => {
      checked.set({ config }, atSeconds);
      if (isFailed) failed.inc({ config });
    },
    served: (code, sent) => {
      requests.inc({ code });
      bytes.inc(sent);
    },
    keepUpdates: (configs, asked) => {
      for (const config of shown.keys()) {
        if (!configs.includes(config)) forget(config);
        if (config !== asked) checked.remove({ config });
      }
    },
  };
}

export const noMetrics = createMetrics();

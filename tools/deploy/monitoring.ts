/**
 * The objects that monitor Refit: a ServiceMonitor, alerts, and a dashboard. A test compares their metrics with the
 * metrics that exist.
 */
import { object, REFIT_NAMESPACE } from './objects.ts';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: 'critical' | 'warning' };
  readonly annotations: { readonly summary: string; readonly description: string };
}

const alert = (
  name: string,
  [severity, wait]: readonly ['critical' | 'warning', string],
  expr: string,
  [summary, description]: readonly [string, string],
): Alert => ({
  alert: name,
  expr,
  for: wait,
  labels: { severity },
  annotations: { summary, description },
});

/** Selects the leader, because a process that was the leader earlier still exports its old measurements. */
const BY_LEADER = 'and on (instance, job, workload_cluster) leader_election_master_status == 1';
/** The labels that distinguish plans. */
const PLAN = 'dialect, plan, workload_cluster';
/** Plans that have not ended. */
const OPEN = 'refit_plans{phase=~"new|running"}';
/** Waits that a person requested. */
const WANTED_WAIT = 'refit_waits{gate=~"not-paused|window-open"}';

export const ALERTS: readonly Alert[] = [
  alert('RefitDown', ['critical', '10m'], 'absent(refit_build_info)', [
    'No process of Refit is scraped.',
    'Plans make no progress. Look at the Deployment and its pods, and at the target in Prometheus.',
  ]),
  alert(
    'RefitNoLeader',
    ['critical', '5m'],
    'max by (name, workload_cluster) (leader_election_master_status) == 0',
    [
      'No process holds the Lease {{ $labels.name }}.',
      'Plans make no progress. Look at the Lease, and at the log of the controllers, which says why they cannot renew it.',
    ],
  ),
  alert(
    'RefitTwoLeaders',
    ['critical', '2m'],
    'sum by (name, workload_cluster) (leader_election_master_status) > 1',
    [
      'More than one process says that it holds the Lease {{ $labels.name }}.',
      'Keep one process, and stop the others. Compare the holder of the Lease with the logs, and check the clocks of the hosts.',
    ],
  ),
  alert(
    'RefitPlanFailed',
    ['warning', '1m'],
    `refit_plans{phase=~"failed|incomplete|invalid"} == 1 ${BY_LEADER}`,
    [
      'The {{ $labels.dialect }} plan {{ $labels.plan }} is {{ $labels.phase }}.',
      'Run `refit why`: it says what failed and what to do.',
    ],
  ),
  alert('RefitNodeFailed', ['warning', '1m'], `refit_targets{phase="failed"} > 0 ${BY_LEADER}`, [
    '{{ $value }} node(s) of the {{ $labels.dialect }} plan {{ $labels.plan }} have failed.',
    'Run `refit why`. Fix the cause, then run `refit retry NODE`.',
  ]),
  alert(
    'RefitPlanStuck',
    ['warning', '15m'],
    `(${OPEN} == 1 ${BY_LEADER}) and on (${PLAN}) (${OPEN} offset 2h == 1) unless on (${PLAN}) (sum by (${PLAN}) (changes(refit_targets[2h])) > 0) unless on (${PLAN}) ${WANTED_WAIT}`,
    [
      'The {{ $labels.dialect }} plan {{ $labels.plan }} has made no progress for two hours.',
      'It is neither paused nor outside of its windows. Run `refit why`: it says what each node waits for.',
    ],
  ),
  alert(
    'RefitReconcileErrors',
    ['warning', '10m'],
    'sum by (name) (increase(workqueue_retries_total[10m])) > 3',
    [
      'The controller {{ $labels.name }} fails again and again.',
      'Look at its log: most often a right is missing, or the API server does not answer.',
    ],
  ),
  alert(
    'RefitApiErrors',
    ['warning', '10m'],
    'sum(rate(rest_client_requests_total{code=~"5..|<error>"}[5m])) / sum(rate(rest_client_requests_total[5m])) > 0.2',
    [
      'One in five requests of Refit to the API server fails.',
      'Look at the API servers. Refit goes on when they answer.',
    ],
  ),
];

export function rules(): object {
  return object('monitoring.coreos.com/v1', 'PrometheusRule', 'refit', REFIT_NAMESPACE, {
    spec: { groups: [{ name: 'refit', rules: ALERTS }] },
  });
}

export function serviceMonitor(): object {
  return object('monitoring.coreos.com/v1', 'ServiceMonitor', 'refit', REFIT_NAMESPACE, {
    spec: {
      namespaceSelector: { matchNames: [REFIT_NAMESPACE, 'system-upgrade'] },
      selector: { matchLabels: { 'app.kubernetes.io/name': 'refit' } },
      endpoints: [{ port: 'health', path: '/metrics', interval: '30s' }],
    },
  });
}

interface Panel {
  readonly type: 'timeseries' | 'stat' | 'table' | 'bargauge';
  readonly unit?: string;
  readonly queries: Readonly<Record<string, string>>;
}

const quantile = (share: number, metric: string, by: string): string =>
  `histogram_quantile(${share}, sum by (le, ${by}) (rate(${metric}_bucket[15m])))`;

/**
 * The panels, two in a row. The panels that answer an operator's first questions come first. The key of a panel is its
 * title, and the key of a query is its legend.
 */
const PANELS: Readonly<Record<string, Panel>> = {
  'Plans by phase': {
    type: 'table',
    queries: { '{{dialect}} {{plan}} {{phase}}': 'refit_plans{dialect=~"$dialect"} == 1' },
  },
  'Leaders (one for each Lease)': {
    type: 'stat',
    queries: {
      '{{name}} {{workload_cluster}}':
        'sum by (name, workload_cluster) (leader_election_master_status)',
    },
  },
  'Nodes by phase': {
    type: 'timeseries',
    queries: {
      '{{plan}} {{phase}}': 'sum by (plan, phase) (refit_targets{dialect=~"$dialect"}) > 0',
    },
  },
  'What nodes wait for': {
    type: 'timeseries',
    queries: {
      '{{plan}} {{gate}} {{reason}}':
        'sum by (plan, gate, reason) (refit_waits{dialect=~"$dialect"})',
    },
  },
  'Time of a step, 90th percentile': {
    type: 'bargauge',
    unit: 's',
    queries: { '{{step}}': quantile(0.9, 'refit_step_duration_seconds', 'step') },
  },
  'Steps finished in an hour': {
    type: 'timeseries',
    queries: {
      '{{step}}':
        'sum by (step) (increase(refit_step_duration_seconds_count{dialect=~"$dialect"}[1h]))',
    },
  },
  'Reconciles by outcome, each second': {
    type: 'timeseries',
    unit: 'reqps',
    queries: {
      '{{controller}} {{outcome}}':
        'sum by (controller, outcome) (rate(refit_reconcile_duration_seconds_count[5m]))',
    },
  },
  'Queue, and retries in ten minutes': {
    type: 'timeseries',
    queries: {
      'depth {{name}}': 'sum by (name) (workqueue_depth)',
      'retries {{name}}': 'sum by (name) (increase(workqueue_retries_total[10m]))',
    },
  },
  'Requests to the API server by code, each second': {
    type: 'timeseries',
    unit: 'reqps',
    queries: { '{{code}}': 'sum by (code) (rate(rest_client_requests_total[5m]))' },
  },
  'Response time of the API server, 99th percentile': {
    type: 'timeseries',
    unit: 's',
    queries: { '{{verb}}': quantile(0.99, 'refit_api_request_duration_seconds', 'verb') },
  },
  Memory: {
    type: 'timeseries',
    unit: 'bytes',
    queries: { '{{pod}}': 'process_resident_memory_bytes and on (instance, job) refit_build_info' },
  },
  CPU: {
    type: 'timeseries',
    unit: 'percentunit',
    queries: {
      '{{pod}}': 'rate(process_cpu_seconds_total[5m]) and on (instance, job) refit_build_info',
    },
  },
};

/** Returns the text of the dashboard, for Grafana's import and for Grafana's sidecar. */
export function dashboard(): string {
  const source = { type: 'prometheus', uid: '${datasource}' };
  const variable = (more: object): object => ({ hide: 0, ...more });
  return `${JSON.stringify(
    {
      uid: 'refit',
      title: 'Refit',
      tags: ['refit'],
      schemaVersion: 39,
      refresh: '30s',
      time: { from: 'now-6h', to: 'now' },
      templating: {
        list: [
          variable({
            name: 'datasource',
            type: 'datasource',
            query: 'prometheus',
            label: 'Data source',
          }),
          variable({
            name: 'dialect',
            type: 'query',
            label: 'Dialect',
            datasource: source,
            query: { query: 'label_values(refit_plans, dialect)', refId: 'dialect' },
            includeAll: true,
            multi: true,
            allValue: '.*',
            refresh: 2,
          }),
        ],
      },
      panels: Object.entries(PANELS).map(([title, panel], index) =>
        panelOf(title, panel, index, source),
      ),
    },
    null,
    2,
  )}\n`;
}

function panelOf(
  title: string,
  { type, unit, queries }: Panel,
  index: number,
  datasource: object,
): object {
  const isTable = type === 'table';
  return {
    id: index + 1,
    title,
    type,
    datasource,
    gridPos: { x: (index % 2) * 12, y: Math.floor(index / 2) * 8, w: 12, h: 8 },
    fieldConfig: { defaults: unit === undefined ? {} : { unit }, overrides: [] },
    targets: Object.entries(queries).map(([legendFormat, expr], number) => ({
      refId: 'ABC'.charAt(number),
      expr,
      legendFormat,
      ...(isTable && { format: 'table', instant: true }),
    })),
  };
}

/** Tests how `spec.health` is read: the result of each entry, and which entries are refused. */
import { expect, test } from 'vitest';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { healthIn } from './read-health.ts';

type HealthSpec = NonNullable<UpgradePolicySpec['health']>;

function read(spec: HealthSpec | undefined) {
  const complaints: string[] = [];
  const rules = healthIn(spec === undefined ? {} : { health: spec }, (field, wanted, found) => {
    complaints.push(`${field}: ${wanted}, found ${JSON.stringify(found)}`);
  });
  return { rules, complaints };
}

const URL = 'http://prometheus.monitoring:9090';
const METRIC = { name: 'rate', url: URL, query: 'up', max: '1e-2' };
const HTTP = { name: 'web', url: 'https://web.example.com/' };
const ALERT = {
  name: 'critical',
  source: 'Prometheus' as const,
  url: URL,
  labels: { severity: 'critical' },
};

const RESOURCE = { name: 'sets', apiVersion: 'apps/v1', kind: 'StatefulSet', expression: 'true' };
const JOB = { name: 'smoke', namespace: 'ops', spec: {} };

/** Returns a case with a time that the API server refuses. */
function timeCase(time: string, field: string, spec: HealthSpec): [string, HealthSpec, string] {
  const wanted = 'a time above zero and below a year, such as 90s or 1h30m';
  return [`${field} ${time}`, spec, `health.${field}: ${wanted}, found "${time}"`];
}

test.each<[string, HealthSpec | undefined, unknown]>([
  ['nothing', undefined, undefined],
  ['no check', { onUnknown: 'Ignore' }, undefined],
  ['no DaemonSets', { daemonSets: 'None' }, undefined],
  [
    'critical DaemonSets',
    { daemonSets: 'Critical' },
    { checks: [{ kind: 'daemonSets', name: 'daemonsets', pods: 'critical' }] },
  ],
  [
    'all DaemonSets, without waiting for answers',
    { daemonSets: 'All', onUnknown: 'Ignore' },
    { checks: [{ kind: 'daemonSets', name: 'daemonsets', pods: 'all' }], ignoresUnknown: true },
  ],
  [
    'a metric',
    { metrics: [{ ...METRIC, min: '-.5', secretName: 'prom', for: '2m' }] },
    {
      checks: [
        {
          kind: 'metrics',
          name: 'rate',
          url: URL,
          query: 'up',
          min: -0.5,
          max: 0.01,
          secretName: 'prom',
          forMs: 120_000,
        },
      ],
    },
  ],
  [
    'alerts of both kinds of server',
    { alerts: [ALERT, { ...ALERT, name: 'silent', source: 'Alertmanager' }] },
    {
      checks: [
        { ...ALERT, kind: 'alerts', source: 'prometheus' },
        { ...ALERT, kind: 'alerts', name: 'silent', source: 'alertmanager' },
      ],
    },
  ],
  ['a server', { http: [HTTP] }, { checks: [{ ...HTTP, kind: 'http' }] }],
  [
    'a Job without a timeout',
    { jobs: [{ name: 'smoke', namespace: 'web', spec: { template: {} } }] },
    {
      checks: [
        {
          kind: 'jobs',
          name: 'smoke',
          namespace: 'web',
          spec: { template: {} },
          timeoutMs: 300_000,
          everyMs: 300_000,
        },
      ],
    },
  ],
])('the health checks that a policy asks for are read: %s', (_title, spec, expected) => {
  expect(read(spec)).toEqual({ rules: expected, complaints: [] });
});

test.each<[string, HealthSpec, string]>([
  [
    'one name for two kinds',
    { metrics: [METRIC], http: [{ ...HTTP, name: 'rate' }] },
    'health.http[0].name: a name that no other check of the policy has, found "rate"',
  ],
  [
    'the name of the DaemonSets',
    { http: [{ ...HTTP, name: 'daemonsets' }] },
    'health.http[0].name: a name that no other check of the policy has, found "daemonsets"',
  ],
  [
    'a selector that selects nothing',
    {
      resources: [
        {
          name: 'db',
          apiVersion: 'apps/v1',
          kind: 'StatefulSet',
          expression: 'true',
          selector: { matchExpressions: [{ key: 'a', operator: 'In', values: [] }] },
        },
      ],
    },
    'health.resources[0].selector: a label selector (',
  ],
  [
    'a metric that nothing bounds',
    { metrics: [{ name: 'rate', url: URL, query: 'up' }] },
    'health.metrics[0]: a check with min, max or both, found "neither"',
  ],
  ...['0s', '99999999h'].flatMap((time) => [
    timeCase(time, 'metrics[0].for', { metrics: [{ ...METRIC, for: time }] }),
    timeCase(time, 'http[0].for', { http: [{ ...HTTP, for: time }] }),
    timeCase(time, 'alerts[0].for', { alerts: [{ ...ALERT, for: time }] }),
    timeCase(time, 'resources[0].for', { resources: [{ ...RESOURCE, for: time }] }),
    timeCase(time, 'jobs[0].timeout', { jobs: [{ ...JOB, timeout: time }] }),
    timeCase(time, 'jobs[0].every', { jobs: [{ ...JOB, every: time }] }),
  ]),
])('%s is refused', (_title, spec, expected) => {
  const { complaints } = read(spec);
  expect(complaints).toHaveLength(1);
  expect(complaints[0]?.slice(0, expected.length)).toBe(expected);
});

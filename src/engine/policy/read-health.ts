/** Reads `spec.health` of an UpgradePolicy into health checks. */
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { compileCel } from '../../health/cel.ts';
import { type HealthCheck, type HealthRules, READINESS } from '../../health/checks.ts';
import { selectorFault } from '../../kube/selectors.ts';
import { defined, isRecord } from '../../util/json.ts';
import { type Complain, readTime } from './read-time.ts';

type HealthSpec = NonNullable<UpgradePolicySpec['health']>;

const DEFAULT_JOB_TIMEOUT_MS = 5 * 60_000;
const DEFAULT_JOB_EVERY_MS = 5 * 60_000;
/** The name of the check that the field `daemonSets` defines. */
const DAEMON_SETS = 'daemonsets';
/** The check that the field `versions.requireReady` defines. */
const READINESS_CHECK: HealthCheck = { kind: 'readiness', name: READINESS };

/**
 * Returns the checks of the policy; undefined if the policy has no checks. Calls `complain` for each field from which
 * no check can be made.
 */
export function healthIn(
  { health: spec = {}, versions }: Pick<UpgradePolicySpec, 'health' | 'versions'>,
  complain: Complain,
): HealthRules | undefined {
  const checks = [
    ...(versions?.requireReady === true ? [READINESS_CHECK] : []),
    ...daemonSetChecks(spec),
    ...resourceChecks(spec, complain),
    ...serverChecks(spec, complain),
    ...jobChecks(spec, complain),
  ];
  reportDoubleNames(spec, versions?.requireReady === true, complain);
  if (checks.length === 0) return undefined;
  return { checks, ...(spec.onUnknown === 'Ignore' ? { ignoresUnknown: true } : {}) };
}

function daemonSetChecks({ daemonSets = 'None' }: HealthSpec): HealthCheck[] {
  if (daemonSets === 'None') return [];
  const pods = daemonSets === 'All' ? 'all' : 'critical';
  return [{ kind: 'daemonSets', name: DAEMON_SETS, pods }];
}

function resourceChecks({ resources = [] }: HealthSpec, complain: Complain): HealthCheck[] {
  return resources.map((each, index) => {
    const { name, apiVersion, kind, namespace, selector, expression } = each;
    const fault = selectorFault(selector);
    if (fault !== undefined)
      complain(`health.resources[${index}].selector`, `a label selector (${fault})`, selector);
    const program = compileCel(expression);
    if (typeof program === 'string')
      complain(
        `health.resources[${index}].expression`,
        `a CEL expression about \`object\` that is true or false (${program})`,
        expression,
      );
    return defined({
      kind: 'resources' as const,
      name,
      apiVersion,
      objectKind: kind,
      namespace,
      selector,
      expression,
      forMs: readTime(`health.resources[${index}].for`, each.for, complain),
    });
  });
}

function serverChecks(
  { alerts = [], metrics = [], http = [] }: HealthSpec,
  complain: Complain,
): HealthCheck[] {
  const alertChecks = alerts.map((each, index): HealthCheck => {
    const { name, url, labels, secretName } = each;
    const source =
      each.source === 'Prometheus' ? ('prometheus' as const) : ('alertmanager' as const);
    return defined({
      kind: 'alerts' as const,
      name,
      source,
      url,
      labels,
      secretName,
      forMs: readTime(`health.alerts[${index}].for`, each.for, complain),
    });
  });
  const metricChecks = metrics.map((each, index): HealthCheck => {
    const { name, url, query, secretName } = each;
    const min = each.min === undefined ? undefined : Number(each.min);
    const max = each.max === undefined ? undefined : Number(each.max);
    if (min === undefined && max === undefined)
      complain(`health.metrics[${index}]`, 'a check with min, max or both', 'neither');
    const forMs = readTime(`health.metrics[${index}].for`, each.for, complain);
    return defined({ kind: 'metrics' as const, name, url, query, min, max, secretName, forMs });
  });
  const httpChecks = http.map((each, index): HealthCheck => {
    const { name, url, secretName } = each;
    const forMs = readTime(`health.http[${index}].for`, each.for, complain);
    return defined({ kind: 'http' as const, name, url, secretName, forMs });
  });
  return [...alertChecks, ...metricChecks, ...httpChecks];
}

function jobChecks({ jobs = [] }: HealthSpec, complain: Complain): HealthCheck[] {
  return jobs.map(({ name, namespace, spec, timeout, every }, index) => {
    const at = `health.jobs[${index}]`;
    const timeoutMs = readTime(`${at}.timeout`, timeout, complain) ?? DEFAULT_JOB_TIMEOUT_MS;
    const everyMs = readTime(`${at}.every`, every, complain) ?? DEFAULT_JOB_EVERY_MS;
    // If the spec is no object, the schema has already refused it. So an empty object can replace it here.
    return { kind: 'jobs', name, namespace, spec: isRecord(spec) ? spec : {}, timeoutMs, everyMs };
  });
}

/** Complains about each name that several checks have. `refit why` shows only the name of a check, so the name must be unique. */
function reportDoubleNames(spec: HealthSpec, requiresReady: boolean, complain: Complain): void {
  const { resources = [], alerts = [], metrics = [], http = [], jobs = [] } = spec;
  const seen = new Set([DAEMON_SETS, ...(requiresReady ? [READINESS] : [])]);
  for (const [kind, checks] of Object.entries({ resources, alerts, metrics, http, jobs }))
    checks.forEach(({ name }, index) => {
      if (seen.has(name))
        complain(
          `health.${kind}[${index}].name`,
          'a name that no other check of the policy has',
          name,
        );
      seen.add(name);
    });
}

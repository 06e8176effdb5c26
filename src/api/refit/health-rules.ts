/** Defines the schema of `health` of an UpgradePolicy. */
import { z } from 'zod';
import { isRecord } from '../../util/json.ts';
import { choice, LONGEST, nameOfNamespace, nameOfObject, object, optional } from '../crd.ts';
import { boundedSelectorSchema, duration, rules } from './policy-values.ts';

/**
 * The maximum number of checks of one kind. Without this limit, a policy could send any number of requests to servers.
 */
const MOST_CHECKS = 20;
const LONGEST_URL = 2048;
const LONGEST_EXPRESSION = 2048;

const NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
const WANTED_NAME =
  'must consist of lower-case letters, digits and dashes, such as error-rate, and must not be daemonsets';
const nameSchema = z
  .string()
  .max(LONGEST.namespace)
  .refine((name) => NAME.test(name), WANTED_NAME)
  .meta(rules([`self.matches('${NAME.source}')`, WANTED_NAME]))
  .describe('The name of the check, which must be unique in the policy.');

// The CEL rules that contain a URL pattern use a raw string (`r'…'`), because CEL takes backslashes literally only in a
// raw string.
const URL_START = /^https?:\/\/[^\s@]+$/;
const WANTED_URL = 'must be a URL that begins with http:// or https:// and contains no credentials';
/** The address of a server. Refit sends requests to it with the credentials from a Secret, or without credentials. */
export const serverUrlSchema = z
  .string()
  .max(LONGEST_URL)
  .refine((url) => URL_START.test(url) && URL.canParse(url), WANTED_URL)
  .meta(rules([`self.matches(r'${URL_START.source}')`, WANTED_URL]));

const forSchema = duration(
  'How long the check must pass without a break, such as `2m`; one good answer by default.',
);
/** The Secret with the credentials for a server of the user, and with the authority of its certificate. */
export const serverSecretSchema = nameOfObject(
  'The name of a Secret in the namespace of the controller. The Secret contains `token`, or `username` and `password`, and, if needed, `ca.crt`.',
).exactOptional();

function checksOf<T extends z.ZodType>(what: string, check: T) {
  return optional(
    what,
    z
      .array(check)
      .max(MOST_CHECKS)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
  );
}

const resourceSchema = object('One check.', {
  name: nameSchema,
  apiVersion: z
    .string()
    .max(LONGEST.name)
    .describe('The API group and version of the objects, such as `apps/v1`.'),
  kind: z.string().max(LONGEST.word).describe('The kind of the objects, such as `StatefulSet`.'),
  namespace: nameOfNamespace(
    'Objects of this namespace only; of all namespaces by default.',
  ).exactOptional(),
  selector: optional('Objects with these labels only; all by default.', boundedSelectorSchema),
  expression: z
    .string()
    .min(1)
    .max(LONGEST_EXPRESSION)
    .describe(
      'A CEL expression that must be true for each object. The expression reads the object as `object`, for example ' +
        '`object.status.readyReplicas == object.spec.replicas`.',
    ),
  for: forSchema,
});

const alertSchema = object('One check.', {
  name: nameSchema,
  source: choice('The kind of server at `url`.', 'Prometheus', 'Alertmanager').unwrap(),
  url: serverUrlSchema.describe(
    'The address of the server, such as `http://prometheus.monitoring:9090`.',
  ),
  labels: z
    .record(z.string().max(LONGEST.labelKey), z.string().max(1024))
    .meta({ maxProperties: MOST_CHECKS, minProperties: 1 })
    .describe('The labels of the alerts that must not fire, such as `severity: critical`.'),
  secretName: serverSecretSchema,
  for: forSchema,
});

const BOUND = /^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$/;
const WANTED_BOUND = 'must be a number as a text, such as "0.01"';
const bound = (what: string) =>
  optional(
    what,
    z
      .string()
      .max(LONGEST.word)
      .refine((value) => BOUND.test(value), WANTED_BOUND)
      .meta(rules([`self.matches('${BOUND.source}')`, WANTED_BOUND])),
  );

const metricSchema = object('One check.', {
  name: nameSchema,
  url: serverUrlSchema.describe(
    'The address of Prometheus, such as `http://prometheus.monitoring:9090`.',
  ),
  query: z
    .string()
    .min(1)
    .max(LONGEST_EXPRESSION)
    .describe('An instant query in PromQL. It must return at least one value.'),
  min: bound('The lowest value that is good, as a text such as `"0.99"`.'),
  max: bound('The highest value that is good, as a text such as `"0.01"`.'),
  secretName: serverSecretSchema,
  for: forSchema,
}).meta(rules(['has(self.min) || has(self.max)', 'must have min, max or both']));

const httpSchema = object('One check.', {
  name: nameSchema,
  url: serverUrlSchema.describe(
    'The address that must answer a GET request with a status from 200 to 299.',
  ),
  secretName: serverSecretSchema,
  for: forSchema,
});

const jobSchema = object('One check.', {
  name: nameSchema,
  namespace: nameOfNamespace('The namespace of the Job.'),
  spec: z
    .unknown()
    .refine(isRecord, 'must be the spec of a Job')
    .meta({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true })
    .describe('The `spec` of the Job, as in `batch/v1`.'),
  timeout: duration('How long the Job may take; 5m by default.'),
  every: duration(
    'How long a success of the Job is valid; 5m by default. Then the Job runs again. It also runs again after the upgrade of each node.',
  ),
});

export const healthSchema = object(
  'What must be healthy before a node starts, and after each upgrade. While a check fails, no node starts.',
  {
    daemonSets: choice(
      'The pods of DaemonSets that must be Ready on the nodes of the plan that are upgraded: `None`, the default; `Critical`: those with the ' +
        'priority class system-node-critical or system-cluster-critical; `All`.',
      'None',
      'Critical',
      'All',
    ),
    resources: checksOf('Objects for which an expression must be true.', resourceSchema),
    alerts: checksOf('Alerts that must not fire.', alertSchema),
    metrics: checksOf('Metrics that must be within bounds.', metricSchema),
    http: checksOf('Servers that must answer.', httpSchema),
    jobs: checksOf('Jobs that must succeed.', jobSchema),
    onUnknown: choice(
      'What happens if a check gets no answer. `Wait`, the default: no node starts until there is an answer. `Ignore`: nodes start.',
      'Wait',
      'Ignore',
    ),
  },
);

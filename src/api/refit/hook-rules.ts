/** Defines the schema of `spec.hooks` of the UpgradePolicy. */
import { z } from 'zod';
import { flag, LONGEST, nameOfNamespace, nameOfObject, object, optional, whole } from '../crd.ts';
import { durationSchema, isBelow, rules } from './policy-values.ts';

/** The maximum number of hooks. Without this limit, a policy could make each decision slow. */
const MOST_HOOKS = 20;
/** The longest name of a hook. It is part of the name of a Job, which has at most 63 characters. */
const LONGEST_HOOK = 30;
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const MOST_RETRIES = 10;
/** The longest value of a label or an annotation of a pod. */
const LONGEST_VALUE = 4096;
const MOST_VALUES = 100;

/** Only the API server knows every field of a pod. It refuses a wrong field when the Job is created. */
const KEEPS_ALL = { 'x-kubernetes-preserve-unknown-fields': true };
const namedContainer = z
  .looseObject({
    name: z.string().min(1).max(LONGEST.namespace).describe('The name of the container.'),
    image: z.string().min(1).max(LONGEST.reason).describe('The image of the container.'),
  })
  .meta(KEEPS_ALL)
  .describe('One container, with the fields of a container of a pod.');

const podSpecSchema = z
  .looseObject({
    containers: z
      .array(namedContainer)
      .min(1, 'must have at least one container')
      .max(10)
      .describe(
        'The containers. They get the variables `REFIT_NODE`, `REFIT_TO_VERSION` and more.',
      ),
  })
  .meta(KEEPS_ALL)
  .describe('The spec of the pod. `restartPolicy` is `Never` by default.');

const textMap = z
  .record(z.string().max(LONGEST.labelKey), z.string().max(LONGEST_VALUE))
  .meta({ maxProperties: MOST_VALUES });

const jobSchema = object('A Job that must complete.', {
  namespace: nameOfNamespace(
    'The namespace of the Job. The leader needs the right to get and create Jobs there.',
  ),
  template: object('The template of the pods of the Job.', {
    metadata: object('Labels and annotations of the pods.', {
      labels: optional('The labels.', textMap),
      annotations: optional('The annotations.', textMap),
    }).exactOptional(),
    spec: podSpecSchema,
  }),
  pinToNode: flag(
    '`true`: the pods run on the node that is upgraded, even while it is unschedulable. By default they run on any node.',
  ),
  retries: whole(
    'How many times a failed pod is replaced, as `backoffLimit` of the Job; 0 by default.',
    MOST_RETRIES,
  ),
});

const LONGEST_URL = 2048;
const HTTPS = /^https:\/\/[^\s/?#@\\]+([/?#]\S*)?$/;
const WANTED_URL = 'must be a URL that begins with https:// and contains no credentials';

const webhookSchema = object('A server that must answer with a status from 200 to 299.', {
  url: z
    .string()
    .max(LONGEST_URL)
    .refine((url) => HTTPS.test(url) && URL.canParse(url), WANTED_URL)
    .meta(rules([`self.matches(r'${HTTPS.source}')`, WANTED_URL]))
    .describe('The address for a signed POST request. It begins with `https://`.'),
  secretName: nameOfObject(
    'The name of a Secret in the namespace of the controller. The Secret contains `key`, which signs requests, and, if needed, `ca.crt`.',
  ),
});

const hookSchema = object('One hook.', {
  name: z
    .string()
    .regex(NAME, 'must consist of lower-case letters, digits and hyphens, for example backup')
    .max(LONGEST_HOOK)
    .describe('The name, which no other hook of the policy has.'),
  when: z
    .enum([
      'BeforePlan',
      'BeforeDrain',
      'AfterDrain',
      'BeforeRestart',
      'AfterVerified',
      'AfterPlan',
    ])
    .describe(
      '`BeforePlan`: once before the first node of a run of the plan. `BeforeDrain`: before the upgrade of a node starts, and so before its ' +
        'cordon and drain. `AfterDrain`: after the controller has drained the node, and before the work on it goes on. `BeforeRestart`: ' +
        'after the hooks `AfterDrain`, and also for nodes that are not drained. `AfterVerified`: after its upgrade, when the node and the ' +
        'API servers are ready; until the hook succeeds, the node keeps its slot. `AfterPlan`: once after a run has ended as done; it does not ' +
        'change the result.',
    ),
  job: jobSchema.exactOptional(),
  webhook: webhookSchema.exactOptional(),
  timeout: durationSchema
    .meta(rules([isBelow('168h'), 'must be a time above zero and up to 168h, such as 10m']))
    .describe('How long the hook may take for one node, or for the plan, such as `10m`.'),
  onFailure: optional(
    'What happens if the hook fails or takes too long. `Stop`, the default: the node fails, and counts against `failureBudget`; with `BeforePlan` no ' +
      'node starts until `refit retry` of the plan; with `AfterPlan` the hooks after it do not run. `Ignore`: the upgrade goes on.',
    z.enum(['Stop', 'Ignore']),
  ),
}).meta(
  rules(
    ['has(self.job) != has(self.webhook)', 'must have either job or webhook'],
    [
      "!self.when.endsWith('Plan') || !has(self.job) || !has(self.job.pinToNode) || !self.job.pinToNode",
      'must not have job.pinToNode with BeforePlan or AfterPlan, because such a hook runs for no single node',
    ],
  ),
);

export const hooksSchema = optional(
  'What must succeed before and after each node, or the whole plan, in this order. A hook may run more than once, so repeating it must do no harm.',
  z
    .array(hookSchema)
    .max(MOST_HOOKS)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
);

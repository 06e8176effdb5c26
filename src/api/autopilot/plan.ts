/**
 * Defines the schema and the types of the autopilot Plan, `autopilot.k0sproject.io/v1beta2`. The schema has the same
 * fields as the original and refuses nothing that the original accepts.
 */
import { z } from 'zod';
import { clusterScoped, type KubeObject } from '../../kube/resources.ts';
import { type CustomKind, flag, list, object, optional, text, time } from '../crd.ts';

export const targetSchema = object('Nodes, selected once when the plan starts.', {
  discovery: object(
    'How nodes are selected: `static` or `selector`. Without either, no node is selected.',
    {
      static: object('Names the nodes one by one.', {
        nodes: list('Names, in any order.', z.string().describe('Name of a node.')),
      }).exactOptional(),
      selector: object(
        'Selects the nodes that match both selectors; an empty selector matches all nodes.',
        {
          labels: text('A label selector as in `kubectl get -l`, such as `pool=blue,!canary`.'),
          fields: text(
            'A field selector as in `kubectl get --field-selector`, such as `metadata.name=worker0`.',
          ),
        },
      ).exactOptional(),
    },
  ),
  limits: object('Limits of the rollout.', {
    concurrent: z
      .int()
      .default(1)
      .describe(
        'How many of these nodes may be in progress at a time. Controllers always go one at a time.',
      ),
  }).default({ concurrent: 1 }),
});

/** This is the form that users write: fields with a default may be missing. */
export type TargetSpec = z.input<typeof targetSchema>;

export const targetsSchema = object('The nodes to update.', {
  controllers: optional('The controllers, one at a time.', targetSchema),
  workers: optional('The workers, after all controllers.', targetSchema),
});

const platformsSchema = z
  .record(
    z.string(),
    object('The download for one platform.', {
      url: z.string().describe('The URL of the file for nodes of this platform.'),
      sha256: text('SHA-256 of the file in hex; without it the file is not verified.'),
    }),
  )
  .describe('The downloads, by `<os>-<arch>` such as `linux-amd64`.');

const k0sUpdateSchema = object('Replaces the k0s binary and restarts it.', {
  version: z.string().describe('The version to install, such as `v1.36.3+k0s.0`.'),
  forceupdate: flag('Replaces the file even when the node already runs `version`.'),
  platforms: platformsSchema,
  targets: targetsSchema,
});

/**
 * Returns a message about the fields that an `airgapupdate` does not have. The documents of k0s describe
 * `targets.workers`, but the API has `workers`.
 */
export function unknownBundleFields({ code, keys }: z.core.$ZodRawIssue): string | undefined {
  if (code !== 'unrecognized_keys' || !Array.isArray(keys) || !keys.includes('targets'))
    return undefined;
  return `has no field ${keys.join(', ')}; move the content of targets.workers to airgapupdate.workers`;
}

const airgapUpdateSchema = z
  .strictObject(
    {
      version: z.string().describe('The version of the image bundle.'),
      platforms: platformsSchema,
      workers: targetSchema.describe('The workers to install the bundle on.'),
    },
    { error: unknownBundleFields },
  )
  .describe('Installs a bundle of container images on workers, for clusters without a registry.');

const commandSchema = object('One step of the plan. With both fields the bundle comes first.', {
  k0supdate: k0sUpdateSchema.exactOptional(),
  airgapupdate: airgapUpdateSchema.exactOptional(),
});

const targetStatusSchema = object('The progress of one node.', {
  name: z.string().describe('Name of the node.'),
  state: z
    .string()
    .describe('The state of the node, such as `SignalPending`, `SignalSent` or `SignalCompleted`.'),
  lastUpdatedTimestamp: time('When the node was found or signalled.'),
});

const workersStatus = list('One entry for each worker.', targetStatusSchema);

const commandStatusSchema = object('The progress of one command.', {
  id: z.int().describe("The command's index in `spec.commands`, from zero."),
  state: z
    .string()
    .describe('The state of the command, with the same values as the state of the plan.'),
  description: text('Why the command stopped.'),
  k0supdate: object('The nodes of a `k0supdate`.', {
    controllers: list('One entry for each controller.', targetStatusSchema),
    workers: workersStatus,
  }).exactOptional(),
  airgapupdate: object('The nodes of an `airgapupdate`.', {
    workers: workersStatus,
  }).exactOptional(),
});

export const planSchema = object(
  'Updates the nodes of a cluster. Only the Plan named `autopilot` runs.',
  {
    spec: object('What the plan does.', {
      id: text(
        'The id of this run, which nodes get with each signal. It must not be empty. Without this field, the uid of the Plan is the id. The definition of k0s demands this field.',
      ),
      timestamp: text('Free text; not interpreted. The definition of k0s demands this field.'),
      commands: z.array(commandSchema).describe('The steps, in order.'),
    }),
    status: object('The progress of the plan; written by the controller only.', {
      state: z
        .string()
        .describe(
          '`SchedulableWait`, `Schedulable`, `Completed`, or the reason why the plan stopped.',
        ),
      commands: z.array(commandStatusSchema).describe('One entry for each command.'),
    }).exactOptional(),
  },
);

export type K0sUpdate = z.input<typeof k0sUpdateSchema>;
export type AirgapUpdate = z.input<typeof airgapUpdateSchema>;
export type PlanCommand = z.input<typeof commandSchema>;
export type TargetStatus = z.input<typeof targetStatusSchema>;
export type CommandStatus = z.input<typeof commandStatusSchema>;
export type Plan = KubeObject & z.input<typeof planSchema>;

/**
 * Returns the id that signals contain. If the Plan has no id, returns its uid. The uid does not change while the Plan
 * runs, and a Plan that is deleted and created again gets a new uid. Later runs of the same Plan add their generation
 * to the id.
 */
export function idOfPlan({ metadata, spec }: Plan): string {
  return spec.id ?? metadata.uid ?? '';
}

/**
 * The annotation on each Plan that Refit created for an UpdateConfig. Its value is JSON. A Plan without this annotation
 * was created by a person.
 */
export const ORIGIN_ANNOTATION = 'upgrade.refit.dev/update';
/** k0s ignores Plans of any other name. */
export const PLAN_NAME = 'autopilot';

export const plans = clusterScoped<Plan>('autopilot.k0sproject.io/v1beta2', 'Plan');

export const planKind: CustomKind = { resource: plans, schema: planSchema };

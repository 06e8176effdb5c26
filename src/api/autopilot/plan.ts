/** Schema and types of the autopilot Plan, `autopilot.k0sproject.io/v1beta2`: the same shape as the original, and no stricter. */
import { z } from 'zod';
import { clusterScoped } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { CustomKind } from '../crd.ts';

const staticNodesSchema = z
  .strictObject({
    nodes: z.array(z.string().describe('Name of a node.')).exactOptional().describe('Names, in any order.'),
  })
  .describe('Names the nodes one by one.');

const selectorSchema = z
  .strictObject({
    labels: z
      .string()
      .exactOptional()
      .describe('A label selector as in `kubectl get -l`, such as `pool=blue,!canary`.'),
    fields: z
      .string()
      .exactOptional()
      .describe('A field selector as in `kubectl get --field-selector`, such as `metadata.name=worker0`.'),
  })
  .describe('Selects the nodes that match both selectors; an empty selector matches all nodes.');

export const targetSchema = z
  .strictObject({
    discovery: z
      .strictObject({ static: staticNodesSchema.exactOptional(), selector: selectorSchema.exactOptional() })
      .describe('How nodes are selected: `static` or `selector`. Without either, no node is selected.'),
    limits: z
      .strictObject({
        concurrent: z
          .int()
          .default(1)
          .describe('How many of these nodes may be in progress at a time. Controllers always go one at a time.'),
      })
      .default({ concurrent: 1 })
      .describe('Limits of the rollout.'),
  })
  .describe('Nodes, selected once when the plan starts.');

/** As written by users: fields with a default may be absent. */
export type TargetSpec = z.input<typeof targetSchema>;

/** The two groups of a k0supdate. */
export const targetsSchema = z
  .strictObject({
    controllers: targetSchema.exactOptional().describe('The controllers, one at a time.'),
    workers: targetSchema.exactOptional().describe('The workers, after all controllers.'),
  })
  .describe('The nodes to update.');

const platformsSchema = z
  .record(
    z.string(),
    z
      .strictObject({
        url: z.string().describe('The URL of the file for nodes of this platform.'),
        sha256: z.string().exactOptional().describe('SHA-256 of the file in hex; without it the file is not verified.'),
      })
      .describe('The download for one platform.'),
  )
  .describe('The downloads, by `<os>-<arch>` such as `linux-amd64`.');

const k0sUpdateSchema = z
  .strictObject({
    version: z.string().describe('The version to install, such as `v1.36.3+k0s.0`.'),
    forceupdate: z.boolean().exactOptional().describe('Replaces the file even when the node already runs `version`.'),
    platforms: platformsSchema,
    targets: targetsSchema,
  })
  .describe('Replaces the k0s binary and restarts it.');

const airgapUpdateSchema = z
  .strictObject({
    version: z.string().describe('The version of the image bundle.'),
    platforms: platformsSchema,
    workers: targetSchema.describe('The workers to install the bundle on.'),
  })
  .describe('Installs a bundle of container images on workers, for clusters without a registry.');

const commandSchema = z
  .strictObject({ k0supdate: k0sUpdateSchema.exactOptional(), airgapupdate: airgapUpdateSchema.exactOptional() })
  .describe('One step of the plan. With both fields the bundle comes first.');

const targetStatusSchema = z
  .strictObject({
    name: z.string().describe('Name of the node.'),
    state: z.string().describe('The state of the node, such as `SignalPending`, `SignalSent` or `SignalCompleted`.'),
    lastUpdatedTimestamp: z
      .string()
      .meta({ format: 'date-time', description: 'When the node was found or signalled.' }),
  })
  .describe('The progress of one node.');

const controllersStatus = z.array(targetStatusSchema).exactOptional().describe('One entry for each controller.');
const workersStatus = z.array(targetStatusSchema).exactOptional().describe('One entry for each worker.');

const commandStatusSchema = z
  .strictObject({
    id: z.int().describe("The command's index in `spec.commands`, from zero."),
    state: z.string().describe("The command's state; the same values as the plan's."),
    description: z.string().exactOptional().describe('Why the command stopped.'),
    k0supdate: z
      .strictObject({ controllers: controllersStatus, workers: workersStatus })
      .exactOptional()
      .describe('The nodes of a `k0supdate`.'),
    airgapupdate: z
      .strictObject({ workers: workersStatus })
      .exactOptional()
      .describe('The nodes of an `airgapupdate`.'),
  })
  .describe('The progress of one command.');

const specSchema = z
  .strictObject({
    id: z.string().describe('Identifies this run; nodes get it with each signal. Must not be empty.'),
    timestamp: z.string().describe('Free text; not interpreted.'),
    commands: z.array(commandSchema).describe('The steps, in order.'),
  })
  .describe('What the plan does.');

const statusSchema = z
  .strictObject({
    state: z.string().describe('`SchedulableWait`, `Schedulable`, `Completed`, or the reason why the plan stopped.'),
    commands: z.array(commandStatusSchema).describe('One entry for each command.'),
  })
  .describe('The progress of the plan; written by the controller only.');

export const planSchema = z
  .strictObject({ spec: specSchema, status: statusSchema.exactOptional() })
  .describe('Updates the nodes of a cluster. Only the Plan named `autopilot` runs.');

export type K0sUpdate = z.input<typeof k0sUpdateSchema>;
export type AirgapUpdate = z.input<typeof airgapUpdateSchema>;
export type PlanCommand = z.input<typeof commandSchema>;
export type TargetStatus = z.input<typeof targetStatusSchema>;
export type CommandStatus = z.input<typeof commandStatusSchema>;
export type Plan = KubeObject & z.input<typeof planSchema>;

export const plans = clusterScoped<Plan>('autopilot.k0sproject.io/v1beta2', 'Plan', 'plans');

export const planKind: CustomKind = {
  resource: plans,
  schema: planSchema,
  statusSubresource: true,
  columns: [
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};

/** Owns the schema and the types of the autopilot Plan, `autopilot.k0sproject.io/v1beta2`: the same shape as the original, no stricter. */
import { z } from 'zod';
import type { Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { CustomKind } from '../crd.ts';
import { targetSchema, targetsSchema } from './target.ts';

const platformsSchema = z
  .record(
    z.string(),
    z
      .strictObject({
        url: z.string().describe('Where a node of this platform downloads the file.'),
        sha256: z.string().exactOptional().describe('Hex SHA-256 of the file; the file is not verified without it.'),
      })
      .describe('What one platform downloads.'),
  )
  .describe('What to download, by `<os>-<arch>` such as `linux-amd64`.');

const k0sUpdateSchema = z
  .strictObject({
    version: z.string().describe('The version that the nodes run afterwards, such as `v1.36.3+k0s.0`.'),
    forceupdate: z.boolean().exactOptional().describe('Also replaces the file where the node already runs `version`.'),
    platforms: platformsSchema,
    targets: targetsSchema,
  })
  .describe('Replaces the k0s binary and restarts it.');

const airgapUpdateSchema = z
  .strictObject({
    version: z.string().describe('The version of the image bundle.'),
    platforms: platformsSchema,
    workers: targetSchema.describe('The workers that get the bundle.'),
  })
  .describe('Puts a bundle of container images on workers, for clusters without a registry.');

const commandSchema = z
  .strictObject({ k0supdate: k0sUpdateSchema.exactOptional(), airgapupdate: airgapUpdateSchema.exactOptional() })
  .describe('One step of the plan. With both members the bundle comes first.');

const targetStatusSchema = z
  .strictObject({
    name: z.string().describe('Name of the node.'),
    state: z.string().describe('How far the node is, such as `SignalPending`, `SignalSent` or `SignalCompleted`.'),
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
    state: z.string().describe("The command's state, from the same words as the plan's."),
    description: z.string().exactOptional().describe('Why the command stopped, where there is more to say.'),
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
    id: z.string().describe('Tells this run from every other one; nodes get it with each signal. Must not be empty.'),
    timestamp: z.string().describe('Free text for people; never interpreted.'),
    commands: z.array(commandSchema).describe('What to do, in this order.'),
  })
  .describe('What the plan does.');

const statusSchema = z
  .strictObject({
    state: z.string().describe('`SchedulableWait`, `Schedulable`, `Completed`, or the reason why it stopped.'),
    commands: z.array(commandStatusSchema).describe('One entry for each command.'),
  })
  .describe('How far the plan is; written by the controller only.');

export const planSchema = z
  .strictObject({ spec: specSchema, status: statusSchema.exactOptional() })
  .describe('Updates the nodes of a cluster. Only the Plan named `autopilot` is carried out.');

export type K0sUpdate = z.input<typeof k0sUpdateSchema>;
export type AirgapUpdate = z.input<typeof airgapUpdateSchema>;
export type PlanCommand = z.input<typeof commandSchema>;
export type TargetStatus = z.input<typeof targetStatusSchema>;
export type CommandStatus = z.input<typeof commandStatusSchema>;
export type Plan = KubeObject & z.input<typeof planSchema>;

export const plans: Resource<Plan> = {
  group: 'autopilot.k0sproject.io',
  version: 'v1beta2',
  kind: 'Plan',
  plural: 'plans',
  namespaced: false,
};

export const planKind: CustomKind = {
  resource: plans,
  schema: planSchema,
  statusSubresource: true,
  columns: [
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};

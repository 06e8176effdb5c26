/** Schema and types of the autopilot UpdateConfig: the source of new versions, and when Plans may be created from them. */
import { z } from 'zod';
import { targetSchema, targetsSchema } from '../../src/api/autopilot/plan.ts';
import type { CustomKind } from '../../src/api/crd.ts';
import type { Resource } from '../../src/kube/resources.ts';
import type { KubeObject } from '../../src/kube/types.ts';

const strategySchema = z
  .strictObject({
    type: z.enum(['periodic', 'cron']).exactOptional().describe('Which of the two fields below counts.'),
    cron: z.string().exactOptional().describe('Deprecated: the schedule, with five or six fields, seconds first.'),
    periodic: z
      .strictObject({
        days: z
          .array(z.string().describe('A weekday in full, such as `Monday`.'))
          .exactOptional()
          .describe('The days on which a Plan may be created; every day when empty.'),
        startTime: z.string().exactOptional().describe('When the window opens, as `HH:MM`.'),
        length: z.string().exactOptional().describe('How long the window stays open, such as `2h30m`.'),
      })
      .exactOptional()
      .describe('A time window on these days.'),
  })
  .describe('When Refit checks for updates.');

const plannedCommandSchema = z
  .strictObject({
    k0supdate: z
      .strictObject({
        forceupdate: z.boolean().exactOptional().describe('As in a Plan.'),
        targets: targetsSchema,
      })
      .exactOptional()
      .describe('A `k0supdate` without version and platforms.'),
    airgapupdate: z
      .strictObject({ workers: targetSchema })
      .exactOptional()
      .describe('An `airgapupdate` without version and platforms.'),
  })
  .describe('One step of the Plan to create.');

const updateConfigSchema = z
  .strictObject({
    spec: z
      .strictObject({
        channel: z.string().default('stable').describe('The release channel to follow.'),
        updateServer: z
          .string()
          .default('https://updates.k0sproject.io')
          .describe('The server that returns the newest version.'),
        upgradeStrategy: strategySchema.exactOptional(),
        planSpec: z
          .strictObject({ commands: z.array(plannedCommandSchema).describe('The steps of the Plan, in order.') })
          .exactOptional()
          .describe('The Plan to create; version and platforms come from the update server.'),
      })
      .describe('The release channel, and when to check it.'),
  })
  .describe('Creates Plans for the versions that an update server offers.');

export type UpdateConfig = KubeObject & z.input<typeof updateConfigSchema>;

const updateConfigs: Resource<UpdateConfig> = {
  group: 'autopilot.k0sproject.io',
  version: 'v1beta2',
  kind: 'UpdateConfig',
  plural: 'updateconfigs',
  namespaced: false,
};

export const updateConfigKind: CustomKind = {
  resource: updateConfigs,
  schema: updateConfigSchema,
  statusSubresource: false,
  columns: [],
};

/** Owns the schema and the types of the autopilot UpdateConfig: where new versions come from and when plans may be made of them. */
import { z } from 'zod';
import type { Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { CustomKind } from '../crd.ts';
import { targetSchema, targetsSchema } from './target.ts';

const strategySchema = z
  .strictObject({
    type: z.enum(['periodic', 'cron']).exactOptional().describe('Which of the two members below counts.'),
    cron: z.string().exactOptional().describe('Deprecated: when to ask, seconds first, five or six fields.'),
    periodic: z
      .strictObject({
        days: z
          .array(z.string().describe('A weekday in full, such as `Monday`.'))
          .exactOptional()
          .describe('The days on which a plan may be made; all of them where the list is empty.'),
        startTime: z.string().exactOptional().describe('When the window opens, as `HH:MM`.'),
        length: z.string().exactOptional().describe('How long it stays open, such as `2h30m`.'),
      })
      .exactOptional()
      .describe('A window in time, on the days named.'),
  })
  .describe('When updates are looked for.');

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
  .describe('One step of the plan to be made.');

const updateConfigSchema = z
  .strictObject({
    spec: z
      .strictObject({
        channel: z.string().default('stable').describe('The line of releases to follow.'),
        updateServer: z
          .string()
          .default('https://updates.k0sproject.io')
          .describe('The server that says which version is the newest.'),
        upgradeStrategy: strategySchema.exactOptional(),
        planSpec: z
          .strictObject({ commands: z.array(plannedCommandSchema).describe('What the plan does, in this order.') })
          .exactOptional()
          .describe('The plan to be made; version and platforms come from the update server.'),
      })
      .describe('What to follow, and when.'),
  })
  .describe('Makes Plans out of what an update server offers.');

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

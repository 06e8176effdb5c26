/**
 * Defines schema and types of the autopilot UpdateConfig, which names the source of new versions and says when Plans may be
 * created from them.
 */
import { z } from 'zod';
import { clusterScoped, type KubeObject } from '../../kube/resources.ts';
import { isRecord } from '../../util/json.ts';
import { type CustomKind, flag, list, object, optional, text } from '../crd.ts';
import { targetSchema, targetsSchema, unknownBundleFields } from './plan.ts';

/**
 * Returns a message about a `cron` that is an object, as the documents of k0s show it. The fields of that object belong
 * to `periodic`.
 */
function windowInPlaceOfSchedule({ input }: z.core.$ZodRawIssue): string | undefined {
  return isRecord(input)
    ? 'is an object, but a schedule is a text such as "0 0 22 * * *"; write days, startTime and length into spec.upgradeStrategy.periodic, with type: periodic'
    : undefined;
}

/** Returns a message about a `cron` inside of `periodic`. */
function scheduleInWindow(unknown: readonly string[]): string | undefined {
  return unknown.includes('cron')
    ? 'has no member cron; move it to spec.upgradeStrategy.cron, with type: cron'
    : undefined;
}

const strategySchema = object('When Refit checks for updates.', {
  type: optional('Selects one of the two fields below.', z.enum(['periodic', 'cron'])),
  cron: optional(
    'Deprecated: the schedule, with six fields, seconds first, or a word such as `@daily`.',
    z.string({ error: windowInPlaceOfSchedule }),
  ),
  periodic: object(
    'A time window on these days.',
    {
      days: list(
        'The days on which a Plan may be created; every day when empty.',
        z.string().describe('A weekday in full, such as `Monday`.'),
      ),
      startTime: text('When the window opens, as `HH:MM`.'),
      length: text('How long the window stays open, such as `2h30m`.'),
    },
    scheduleInWindow,
  ).exactOptional(),
});

const plannedCommandSchema = object('One step of the Plan to create.', {
  k0supdate: object('A `k0supdate` without version and platforms.', {
    forceupdate: flag('The same as `forceupdate` in a Plan.'),
    targets: targetsSchema,
  }).exactOptional(),
  airgapupdate: z
    .strictObject({ workers: targetSchema }, { error: unknownBundleFields })
    .describe('An `airgapupdate` without version and platforms.')
    .exactOptional(),
});

const updateConfigSchema = object('Creates Plans for the versions that an update server offers.', {
  spec: object('The release channel, and when to check it.', {
    channel: z.string().default('stable').describe('The release channel to follow.'),
    updateServer: z
      .string()
      .default('https://updates.k0sproject.io')
      .describe('The server that returns the newest version.'),
    upgradeStrategy: strategySchema.exactOptional(),
    planSpec: object('The Plan to create; version and platforms come from the update server.', {
      commands: z.array(plannedCommandSchema).describe('The steps of the Plan, in order.'),
    }).exactOptional(),
  }),
});

export type PlannedCommand = z.input<typeof plannedCommandSchema>;
export type UpdateConfig = KubeObject & z.input<typeof updateConfigSchema>;

export const updateConfigs = clusterScoped<UpdateConfig>(
  'autopilot.k0sproject.io/v1beta2',
  'UpdateConfig',
);

export const updateConfigKind: CustomKind = {
  resource: updateConfigs,
  schema: updateConfigSchema,
  // One example in the documentation of k0s uses this wrong name of the kind.
  misnomer: 'UpdaterConfig',
};

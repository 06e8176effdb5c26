/**
 * Defines the schema of the StatusShard, which holds the progress of some targets of a plan that has too many targets for one
 * object.
 */
import { z } from 'zod';
import { clusterScoped, type KubeObject } from '../../kube/resources.ts';
import { type CustomKind, LONGEST, list, object, time } from '../crd.ts';

const nameSchema = z.string().max(LONGEST.name);

const settledSchema = object('Nodes that finished at the same time.', {
  state: z
    .string()
    .max(LONGEST.word)
    .describe("Their state, in the words of the plan's status, such as `SignalCompleted`."),
  since: time('When this state was recorded.'),
  targets: z.array(nameSchema).describe('Names of the nodes.'),
});

export const statusShardSchema = object(
  'The progress of some nodes of a plan that has too many nodes for one object. Only the controller writes this object, and it is deleted with its plan.',
  {
    command: z.int().describe("Index of the command in the plan's `spec.commands`, from zero."),
    list: z
      .string()
      .max(LONGEST.word)
      .describe(
        "The list in the command's status to which the nodes belong, such as `k0supdate.workers`.",
      ),
    since: time('When the nodes were found.'),
    pending: z
      .array(nameSchema)
      .describe(
        'Names of the nodes that are not done, in order. The plan itself lists the nodes that are in progress.',
      ),
    settled: list('The nodes that are done or have failed.', settledSchema),
  },
);

export type StatusShard = KubeObject & z.input<typeof statusShardSchema>;

export const statusShards = clusterScoped<StatusShard>('upgrade.refit.dev/v1alpha1', 'StatusShard');

export const statusShardKind: CustomKind = { resource: statusShards, schema: statusShardSchema };

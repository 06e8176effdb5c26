/** How the autopilot kinds select nodes: by list or selector, with a limit on how many are updated at a time. */
import { z } from 'zod';

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

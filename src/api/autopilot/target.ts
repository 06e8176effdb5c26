/** Owns how the autopilot kinds name nodes: by list or by selector, and how many may be updated at a time. */
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
  .describe('Chooses every node that matches both selectors; an empty one matches all.');

export const targetSchema = z
  .strictObject({
    discovery: z
      .strictObject({ static: staticNodesSchema.exactOptional(), selector: selectorSchema.exactOptional() })
      .describe('Where the nodes come from: `static` or `selector`; neither means no node.'),
    limits: z
      .strictObject({
        concurrent: z
          .int()
          .default(1)
          .describe('How many of these nodes may be in the works at a time. Controllers always go one at a time.'),
      })
      .default({ concurrent: 1 })
      .describe('What bounds the speed.'),
  })
  .describe('Nodes, found once when the plan starts.');

/** As people write it: what has a default may be absent. */
export type TargetSpec = z.input<typeof targetSchema>;

/** The two groups of a k0supdate. */
export const targetsSchema = z
  .strictObject({
    controllers: targetSchema.exactOptional().describe('The controllers, one at a time.'),
    workers: targetSchema.exactOptional().describe('The workers, after all controllers.'),
  })
  .describe('The nodes to update.');

/** Owns the schema of `status.conditions` in the kinds of our own: Kubernetes' usual one. */
import { z } from 'zod';

const conditionSchema = z
  .strictObject({
    type: z.string().describe('What it is about.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
    observedGeneration: z.int().exactOptional().describe('The generation of the spec that it speaks of.'),
    lastTransitionTime: z
      .string()
      .meta({ format: 'date-time' })
      .exactOptional()
      .describe('When `status` changed last.'),
    reason: z.string().exactOptional().describe('One word.'),
    message: z.string().exactOptional().describe('One sentence.'),
  })
  .describe('One condition.');

export const conditionsSchema = z
  .array(conditionSchema)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
  .describe('How it stands.');

/** Schema of `status.conditions` in Refit's own kinds, as Kubernetes usually has it. */
import { z } from 'zod';

const conditionSchema = z
  .strictObject({
    type: z.string().describe('What the condition is about.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Whether it is true.'),
    observedGeneration: z.int().exactOptional().describe('The generation of the spec that it describes.'),
    lastTransitionTime: z
      .string()
      .meta({ format: 'date-time' })
      .exactOptional()
      .describe('When `status` last changed.'),
    reason: z.string().exactOptional().describe('The reason, as one word.'),
    message: z.string().exactOptional().describe('The reason, as a sentence.'),
  })
  .describe('One condition.');

export const conditionsSchema = z
  .array(conditionSchema)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
  .describe('The current conditions.');

/** Schema of a Kubernetes label selector, as in Plans of `upgrade.cattle.io`. */
import { z } from 'zod';

const requirementSchema = z
  .strictObject({
    key: z.string().describe('The label.'),
    operator: z.string().describe('`In`, `NotIn`, `Exists` or `DoesNotExist`.'),
    values: z.array(z.string()).exactOptional().describe('The values, with `In` and `NotIn` only.'),
  })
  .describe('One requirement.');

export const labelSelectorSchema = z
  .strictObject({
    matchLabels: z.record(z.string(), z.string()).exactOptional().describe('Labels with exactly these values.'),
    matchExpressions: z
      .array(requirementSchema)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .exactOptional()
      .describe('Further requirements; all must hold.'),
  })
  .meta({ 'x-kubernetes-map-type': 'atomic' });

export type LabelSelector = z.input<typeof labelSelectorSchema>;

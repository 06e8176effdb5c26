/** Owns the schema of the autopilot ControlNode: the object that stands for a controller which has no Node of its own. */
import { z } from 'zod';
import type { ControlNode } from '../../signal/names.ts';
import { controlNodes } from '../../signal/names.ts';
import type { CustomKind } from '../crd.ts';

const addressSchema = z
  .strictObject({
    type: z.string().describe('What the address is, such as `InternalIP` or `Hostname`.'),
    address: z.string().describe('The address itself.'),
  })
  .describe('One address, in the form that Nodes use.');

const controlNodeSchema = z
  .strictObject({
    status: z
      .strictObject({
        addresses: z.array(addressSchema).exactOptional().describe('Where the controller is reached.'),
        k0sVersion: z.string().exactOptional().describe('The version that the controller runs.'),
      })
      .exactOptional()
      .describe('What the controller says of itself.'),
  })
  .describe('A controller. Its annotations carry the signals to the agent beside it.') satisfies z.ZodType<
  Pick<ControlNode, 'status'>
>;

export const controlNodeKind: CustomKind = {
  resource: controlNodes,
  schema: controlNodeSchema,
  statusSubresource: true,
  columns: [],
};

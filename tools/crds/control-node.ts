/** Schema of the autopilot ControlNode, which represents a controller without a Node. */
import { z } from 'zod';
import type { CustomKind } from '../../src/api/crd.ts';
import type { ControlNode } from '../../src/signal/names.ts';
import { controlNodes } from '../../src/signal/names.ts';

const addressSchema = z
  .strictObject({
    type: z.string().describe('The type of the address, such as `InternalIP` or `Hostname`.'),
    address: z.string().describe('The address.'),
  })
  .describe('One address, in the form that Nodes use.');

const controlNodeSchema = z
  .strictObject({
    status: z
      .strictObject({
        addresses: z
          .array(addressSchema)
          .exactOptional()
          .describe('The addresses of the controller.'),
        k0sVersion: z.string().exactOptional().describe('The version that the controller runs.'),
      })
      .exactOptional()
      .describe('Written by the agent on the controller.'),
  })
  .describe('A controller. Its annotations carry the signals to its agent.') satisfies z.ZodType<
  Pick<ControlNode, 'status'>
>;

export const controlNodeKind: CustomKind = { resource: controlNodes, schema: controlNodeSchema };

/** The commands for Machines of Cluster API. */
import type { ObjectCommands } from '../../../cli/contract/object-commands.ts';
import { heldOwners } from './held-owners.ts';
import { approve, retryMachine } from './machine-controls.ts';
import { previewMachines } from './preview-machines.ts';

export const machineCommands: ObjectCommands = {
  retry: retryMachine,
  held: heldOwners,
  approve,
  preview: previewMachines,
};

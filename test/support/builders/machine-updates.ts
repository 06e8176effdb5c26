/** The request for an update that Cluster API writes on a Node, for tests. */
import type { MachineOwners } from '../../../src/dialects/capi/plan/machine-owners.ts';
import type { MachineUpdate } from '../../../src/dialects/capi/plan/machine-update.ts';
import { later } from '../clock/times.ts';

export function buildMachineUpdate(): MachineUpdate {
  return {
    uid: 'u',
    machine: 'ns/m',
    version: 'v1',
    role: 'worker',
    requested: later(0),
    platform: 'linux-amd64',
    url: 'https://example.com',
  };
}

/** Each Machine is a plan of its own. */
export const OWN_PLANS: MachineOwners = {
  of: async () => await Promise.resolve(undefined),
  nodesOf: async () => await Promise.resolve([]),
  lastRunOf: async () => await Promise.resolve(undefined),
};

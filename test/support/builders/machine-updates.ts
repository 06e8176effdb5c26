/** The request for an update that Cluster API writes on a Node, for tests. */
import type { MachineUpdate } from '../../../src/dialects/capi/plan/rollout.ts';
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

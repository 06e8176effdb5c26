/** The module of the dialect of Cluster API. */

import type { DialectModule } from '../../cli/contract/dialect-module.ts';
import { SIGNAL_STEPS } from '../shared/signal-steps.ts';
import { advice } from './advice.ts';
import { policyEffects } from './policy-effects.ts';

export const capiModule: DialectModule = {
  name: 'capi',
  view: async () => (await import('./plan/capi-dialect.ts')).capi,
  process: { lease: undefined, eventComponents: [] },
  advice,
  steps: SIGNAL_STEPS,
  objects: async () => (await import('./command/object-commands.ts')).machineCommands,
  commands: async () => (await import('./command/commands.ts')).machineProcesses,
  install: {
    name: 'capi',
    title: 'the extension for Cluster API',
    folders: ['base', 'capi'],
    hasPayload: true,
  },
  upgrade: {
    kind: 'objects',
    load: async () => (await import('./command/upgrade-machines.ts')).upgradeMachines,
  },
  rollBack: {
    kind: 'byHand',
    instead:
      'run refit rollback machine/NAME -n NAMESPACE with the kubeconfig of the management cluster: it names the object to change, and the version',
  },
  objectRollBack: {
    // The name of a Machine or of its owner. The plan of a Machine is an object of the workload cluster, and has the name
    // `capi/NAME`.
    isMeant: (named) => /^(machine|machinedeployment|[a-z0-9]+controlplane)\//i.test(named),
    load: async () => (await import('./command/roll-back-machines.ts')).rollBackMachines,
  },
  files: async () => (await import('./command/file-kinds.ts')).machineFiles,
  policyEffects,
  readiness: async () => (await import('./plan/readiness.ts')).clusterApiReadiness,
  readyTarget: {
    flag: 'cluster',
    load: async () => (await import('./command/ready-cluster.ts')).withCluster,
  },
  selfDrain: undefined,
};

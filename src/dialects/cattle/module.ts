/** The module of the dialect of Rancher's system-upgrade-controller. */

import type { DialectModule } from '../../cli/contract/dialect-module.ts';
import { advice } from './advice.ts';
import { policyEffects } from './policy-effects.ts';
import { selfDrain } from './self-drain.ts';

export const cattleModule: DialectModule = {
  name: 'cattle',
  view: async () => (await import('./plan/cattle-dialect.ts')).cattleView,
  process: { lease: undefined, eventComponents: [] },
  advice,
  // The Job of a Plan reports no steps. If the leader drains the node, this is the step before the Job.
  steps: new Map([['Drain', 'drain']]),
  objects: undefined,
  commands: async () => (await import('./command/commands.ts')).rancherCommands,
  install: {
    name: 'cattle',
    title: 'the replacement for system-upgrade-controller',
    folders: ['base', 'cattle'],
    hasPayload: false,
  },
  upgrade: {
    kind: 'objects',
    load: async () => (await import('./command/upgrade-rancher.ts')).upgradeRancher,
  },
  rollBack: {
    kind: 'command',
    takesImage: true,
    load: async () => {
      const { rollBackCattlePlan } = await import('./command/roll-back-cattle-command.ts');
      return { plan: rollBackCattlePlan, deleted: () => undefined };
    },
  },
  objectRollBack: undefined,
  files: async () => (await import('./command/file-kinds.ts')).rancherFiles,
  policyEffects,
  readiness: async () => (await import('./plan/readiness.ts')).rancherReadiness,
  readyTarget: undefined,
  selfDrain,
};

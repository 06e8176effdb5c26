/** The module of the dialect of k0s Autopilot. */

import type { DialectModule } from '../../cli/contract/dialect-module.ts';
import { SIGNAL_STEPS } from '../shared/signal-steps.ts';
import { advice } from './advice.ts';
import { LEADER_LEASE } from './leader-lease.ts';
import { policyEffects } from './policy-effects.ts';
import { selfDrain } from './self-drain.ts';

export const autopilotModule: DialectModule = {
  name: 'autopilot',
  view: async () => (await import('./plan/autopilot-dialect.ts')).autopilot,
  process: { lease: LEADER_LEASE, eventComponents: ['refit-controller'] },
  advice,
  steps: SIGNAL_STEPS,
  objects: undefined,
  commands: async (all) => (await import('./command/commands.ts')).k0sCommands(all),
  install: {
    name: 'controller',
    title: 'the controller for Plans of k0s',
    folders: ['base', 'k0s'],
    hasPayload: false,
  },
  upgrade: {
    kind: 'objects',
    load: async () => (await import('./command/upgrade-k0s.ts')).upgradeK0s,
  },
  rollBack: {
    kind: 'command',
    takesImage: false,
    load: async () => (await import('./command/roll-back-of-k0s.ts')).rollBackOfK0s,
  },
  objectRollBack: undefined,
  files: async () => (await import('./command/file-kinds.ts')).k0sFiles,
  policyEffects,
  readiness: async () => (await import('./plan/readiness.ts')).k0sReadiness,
  readyTarget: undefined,
  selfDrain,
};

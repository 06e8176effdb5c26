/** The module of the dialect of Cluster API. */

import type { DialectModule } from '../../cli/contract/dialect-module.ts';
import { NO_EFFECTS } from '../shared/policy-effects.ts';
import { SIGNAL_STEPS } from '../shared/signal-steps.ts';
import { advice } from './advice.ts';

export const capiModule: DialectModule = {
  name: 'capi',
  view: async () => (await import('./plan/capi-dialect.ts')).capi,
  process: { lease: undefined, eventComponents: [] },
  advice,
  steps: SIGNAL_STEPS,
  objects: async () => (await import('./command/object-commands.ts')).machineCommands,
  files: async () => (await import('./command/file-kinds.ts')).machineFiles,
  policyEffects: NO_EFFECTS,
  selfDrain: undefined,
};

/** The module of the dialect of kubeadm over SSH. */

import type { DialectModule } from '../../cli/contract/dialect-module.ts';
import { policyEffects } from './policy-effects.ts';
import { texts } from './texts.ts';

export const kubeadmModule: DialectModule = {
  name: 'kubeadm',
  view: async () => (await import('./plan/kubeadm-dialect.ts')).kubeadmView,
  ...texts,
  objects: undefined,
  commands: async () => (await import('./command/commands.ts')).kubeadmCommands,
  install: undefined,
  upgrade: {
    kind: 'file',
    load: async () => (await import('./command/upgrade-manifest.ts')).upgradeManifest,
  },
  rollBack: {
    kind: 'byHand',
    instead:
      'write the older patch and its binaries into the manifest, and run refit kubeadm apply --back; an older minor version needs a snapshot of etcd',
  },
  objectRollBack: undefined,
  files: async () => (await import('./command/file-kinds.ts')).manifestFiles,
  policyEffects,
  readiness: async () => (await import('./plan/readiness.ts')).kubeadmReadiness,
  readyTarget: {
    flag: 'manifest',
    load: async () => (await import('./command/ready-manifest.ts')).withManifest,
  },
  selfDrain: undefined,
};

/** The options that the command passes to the process inside the operator's namespaces. */
import type { Program } from '../capi/managers/programs.ts';
import type { ClusterOptions } from './cluster.ts';

export type Part =
  | 'upgrade'
  | 'faults'
  | 'roll-back'
  | 'patch-back'
  | 'packages-back'
  | 'static-pods-back'
  | 'another-way'
  | 'agents'
  | 'daemonset'
  | 'managers'
  | 'recordings'
  | 'replace-host'
  | 'certificates'
  | 'minor'
  | 'hops'
  | 'skipped-minors';

export interface InsideOptions extends Omit<ClusterOptions, 'log' | 'way'> {
  readonly part: Part;
  /** The managers of Cluster API. Only the part that runs managers needs them. */
  readonly managers: readonly Program[];
  /** The version of etcd that the last version of Kubernetes runs. */
  readonly etcd: string;
  /** The built command. */
  readonly refit: string;
  /** The folder for the output of each command. */
  readonly logs: string;
}

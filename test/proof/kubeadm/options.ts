/** What the command tells the process inside the operator's namespaces. */
import { join } from 'node:path';
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
  | 'hops'
  | 'skipped-minors';

export interface InsideOptions extends Omit<ClusterOptions, 'log' | 'way'> {
  readonly part: Part;
  /** Of Cluster API, for the part that has them. */
  readonly managers: readonly Program[];
  /** The built command. */
  readonly refit: string;
  /** Folder of what each command said. */
  readonly logs: string;
}

/** File for the outcome. */
export const resultOf = ({ directory }: Pick<InsideOptions, 'directory'>): string =>
  join(directory, 'result.json');

/** The options that the command passes to the process inside the operator's namespaces. */
import type { ClusterOptions } from '../kubeadm/cluster.ts';
import type { Original } from './original.ts';

export const PARTS = ['suite', 'swap', 'upgrade-script'] as const;
export type Part = (typeof PARTS)[number];

export interface InsideOptions extends Omit<ClusterOptions, 'log' | 'way'> {
  readonly part: Part;
  /** The programs of the original, if the part needs them. */
  readonly original?: Original | undefined;
  /** The version of the original. */
  readonly version: string;
  /** The archives of images for every machine, as paths below `parts`. */
  readonly archives: readonly string[];
  /** The path of Helm. */
  readonly helm: string;
  /** The path of the built `refit`. */
  readonly refit: string;
  /** The folder for the output of commands. */
  readonly logs: string;
}

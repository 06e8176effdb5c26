/**
 * The types for the versions that nodes ran before a run of a plan. The leader recorded these versions in the
 * NodeRollout.
 */
import type { Role } from './rollout.ts';

/** Nodes that ran one version before the run. */
export interface VersionBefore {
  readonly role: Role;
  /** The version that these nodes ran; undefined if it is unknown. */
  readonly version?: string;
  readonly nodes: readonly string[];
  /** True if the nodes of this role that no entry names also ran this version. */
  readonly others: boolean;
}

export interface EarlierRun {
  /** `<uid of the plan>/<id of the run>`. */
  readonly run: string;
  readonly before: readonly VersionBefore[];
}

/** The contract of the ways in which a user names the cluster and the version for `refit ready`. */
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import type { ClusterConfig } from '../../kube/config/cluster-config.ts';
import type { Check, DialectReadiness } from '../../ready/context.ts';
import type { ConnectionFlags } from '../options.ts';
import type { CommandParts } from './object-commands.ts';

export interface ReadyTarget {
  /** The version to which the cluster is to go, with its `v`. */
  readonly to: string;
  /** The connection to the cluster whose nodes get the version. */
  readonly config: ClusterConfig;
  /** What the dialect of this way reads, in place of what its module reads otherwise; undefined if the way is of no dialect. */
  readonly readiness: DialectReadiness | undefined;
  /** What only this way to name the target can ask about its machines. */
  readonly groundChecks: readonly Check[];
  /** Policies that apply as if the user had applied them. */
  readonly policies: readonly UpgradePolicy[];
}

export interface ReadyTargetFlags extends ConnectionFlags {
  readonly to?: string;
  readonly file?: readonly string[];
  readonly manifest?: string;
  readonly cluster?: string;
  readonly namespace?: string;
  readonly output: 'text' | 'json';
}

/** Runs `work` with the target that the flags name, and closes what it has opened. Resolves with the result of `work`. */
export type WithReadyTarget = <T>(
  flags: ReadyTargetFlags,
  parts: CommandParts,
  work: (target: ReadyTarget) => Promise<T>,
) => Promise<T>;

/** A flag of `refit ready` with which only one dialect can do something. */
export interface ReadyTargetWay {
  readonly flag: 'manifest' | 'cluster';
  load(): Promise<WithReadyTarget>;
}

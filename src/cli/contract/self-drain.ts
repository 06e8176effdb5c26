/** The contract of drains that something other than the leader does. */
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';

/** The fields of `spec.drain` that something other than the leader may ignore. */
export type DrainField = Extract<
  keyof NonNullable<UpgradePolicySpec['drain']>,
  | 'pods'
  | 'order'
  | 'waitForJobs'
  | 'loadBalancers'
  | 'volumes'
  | 'evictionRequests'
  | 'zeroDisruptionBudgets'
>;

/** Something other than the leader that may drain a node of the dialect. */
export interface SelfDrain {
  /** Says in a sentence who drains, such as `a k0s node that drains itself`. */
  readonly drainer: string;
  /** Names such a node in a sentence. */
  readonly node: string;
  /** A sentence without a full stop: when the leader does not drain. */
  readonly when: string;
  /** The fields that then have no effect. */
  readonly unread: readonly DrainField[];
}

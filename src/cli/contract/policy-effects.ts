/** The contract of the effects of an UpgradePolicy on the plans of one dialect. */
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';

/**
 * Whether a field has an effect. If it has, `on` names the plans in a sentence. If it has none, `instead` is a sentence
 * that says what counts instead; undefined if nothing does.
 */
export type FieldEffect =
  | { readonly hasEffect: true; readonly on: string }
  | { readonly hasEffect: false; readonly instead: string | undefined };

/** The fields of a policy that have no effect on the plans of some dialects. */
export interface PolicyEffects {
  readonly retry: FieldEffect;
  readonly keepPrevious: FieldEffect;
}

/** The fields of `spec.drain` that something other than the leader may ignore. */
export type DrainField = Extract<
  keyof NonNullable<UpgradePolicySpec['drain']>,
  'pods' | 'order' | 'waitForJobs' | 'loadBalancers' | 'volumes' | 'evictionRequests'
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

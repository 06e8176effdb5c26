/**
 * The contract of the texts about the plans of one dialect: which process carries the plans out, and what the user can do
 * after a failure.
 */
import type { PlanPhase } from '../../engine/model/shown-phases.ts';
import type { Guidance } from './guidance.ts';

/** What the texts need to know about a plan. */
export interface AdvisedPlan {
  /** The name of the dialect. */
  readonly dialect: string;
  /** The kind of the object that people regard as the plan. */
  readonly kind?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name: string;
  /** The run that the plan rolls back, as `<uid of its plan>/<id>`; absent for every other plan. */
  readonly rollsBackRun?: string | undefined;
  /** True if the plan takes its nodes back to earlier versions. */
  readonly goesBack?: boolean | undefined;
  /** The name of the UpdateConfig that created the plan; absent if a user created the plan. */
  readonly updateConfig?: string | undefined;
}

export interface PlanToLeave extends AdvisedPlan {
  readonly phase: PlanPhase;
}

/** No member is optional, so that a dialect that leaves one out does not compile. */
export interface PlanRunner {
  readonly name: string;
  /**
   * The name by which the output lines about changes refer to the plan. Set only for plans whose object is just a
   * record. For every other plan, the lines use the kind and the name of the plan's object.
   */
  readonly subject: string | undefined;
  /**
   * A clause that follows "when" and says when a node in progress fails. It is used for a step
   * without a deadline of its own.
   */
  readonly limit: string;
  /** What lists the nodes of a plan, such as `the Plan`. A user corrects it there. */
  readonly listing: string;
  /** Returns how the user runs the whole plan again after an abort. For every other plan, `again` says it. */
  startOver(plan: AdvisedPlan): Guidance;
  /**
   * Returns what the user does after fixing the cause of a failure that `refit retry` cannot retry. If `nodes` is set, only
   * these nodes need the plan again.
   */
  again(plan: AdvisedPlan, nodes?: readonly string[]): Guidance;
  /**
   * A sentence that says what the user does about a refused plan. Set only for dialects whose plans continue by themselves
   * once they are corrected.
   */
  readonly corrected: string | undefined;
  /**
   * Set if `refit retry` can try a failed node again. `causes` is a clause that says where the user finds the cause of
   * the failure.
   */
  readonly retry: { readonly causes: string } | undefined;
  /** True if `refit retry` with the name of an aborted plan starts this plan again. */
  readonly retriesAborted: boolean;
  /** True if a retry of a failed node that is gone lets the plan go on without it. */
  readonly retriesGone: boolean;
  /** Returns how the user takes the upgraded nodes of the plan back to their earlier version. */
  goBack(plan: PlanToLeave): Guidance;
  /**
   * Returns a clause that says how the user gives the nodes another version after a node has failed, if the release itself
   * is at fault. Undefined if something else must happen before another version can be given.
   */
  otherVersion(plan: PlanToLeave): string | undefined;
  /**
   * A clause that says what the holds of nodes of this plan mean for other nodes. Undefined if they mean nothing for them.
   */
  effectOfHolds(plan: AdvisedPlan): string | undefined;
  /**
   * A clause that says how the user saves the data of the control plane before a step that cannot be undone. Undefined for
   * dialects whose plans `refit preview` shows without such steps.
   */
  readonly backUp: string | undefined;
  /** True if the process that carries out the plans runs on the same machine as `refit status`. */
  readonly runsHere: boolean;
}

/** The type for a target that joined after its plan began. */
import type { Role, Target } from './rollout.ts';

/** A target that a running plan selects or lists, but that its record lacks, because it joined after the plan began. */
export interface JoinedTarget {
  /** The id of the stage to which the target would belong. */
  readonly stage: string;
  readonly role: Role;
  readonly target: Target;
  /** The reason why the record cannot include the target, as a clause; undefined if the record can include it. */
  readonly obstacle?: string;
}

/**
 * The contract of a dialect: how its objects are converted to a rollout, how a rollout is recorded, and how a target is
 * signalled.
 */
import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { Rollout, Stage, Target, TurnTime } from '../model/rollout.ts';
import type { Features } from './features.ts';
import type { Signal } from './signal.ts';
import type { Endpoint, Watched, World } from './world.ts';

/**
 * The members that the engine requires from every dialect. All functions are pure, unless their comments say that they
 * send requests.
 */
export interface Dialect<P extends KubeObject = KubeObject> extends Features<P> {
  /** The name of the dialect in messages, metrics and policies. */
  readonly name: string;
  /** The kind of the plans. */
  readonly plans: Resource<P>;
  /** The kinds that decisions depend on. The list need not contain the kind of the plans. */
  readonly watched: readonly Watched[];
  /**
   * Returns the recorded rollout; if there is no record, a new rollout whose targets are read from the world. `now` is
   * in milliseconds. The `since` of a recorded target comes from the record, so it is the same in each turn.
   */
  resolve(plan: P, world: World, now: TurnTime): Rollout;
  /** Returns the plan with the rollout recorded in it at `now` (ms). Fields that Refit does not own stay as they were. */
  project(rollout: Rollout, plan: P, now: number): P;
  /**
   * Returns the object that represents a target; undefined if it does not exist. The labels of the object contain the
   * platform, and its conditions show whether the target is ready.
   */
  objectOf(stage: Stage, target: Target, world: World): KubeObject | undefined;
  /** Returns the API servers that must be ready before a target may start; empty if the dialect knows none. */
  endpoints(world: World): readonly Endpoint[];
  /** Sends instructions to targets, and reads their reports. */
  readonly signal: Signal<P>;
}

/** The contract of a dialect: how its objects become a rollout, how a rollout is recorded, and how a target is signalled. */
import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import type { Features } from './features.ts';
import type { Signal } from './signal.ts';
import type { Endpoint, Watched, World } from './world.ts';

/** What the engine asks of every dialect. All members are pure, unless their comments say that they make requests. */
export interface Dialect<P extends KubeObject = KubeObject> extends Features<P> {
  /** The name of the dialect in messages, metrics and policies. */
  readonly name: string;
  /** The kind of the plans. */
  readonly plans: Resource<P>;
  /** The kinds that decisions depend on. The list need not contain the kind of the plans. */
  readonly watched: readonly Watched[];
  /** Returns the recorded rollout, or a new one with its targets resolved from the world. `now` is in milliseconds. */
  resolve(plan: P, world: World, now: number): Rollout;
  /** Returns the plan with the rollout recorded in it at `now` (ms). Fields that Refit does not own stay as they were. */
  project(rollout: Rollout, plan: P, now: number): P;
  /**
   * Returns the object that stands for a target; undefined if it does not exist. The labels of the object name the platform, and
   * its conditions show whether the target is ready.
   */
  objectOf(stage: Stage, target: Target, world: World): KubeObject | undefined;
  /** Returns the API servers that must be ready before a target may start; empty if the dialect knows none. */
  endpoints(world: World): readonly Endpoint[];
  /** Tells targets what to do, and reads what they report. */
  readonly signal: Signal<P>;
}

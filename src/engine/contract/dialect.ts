/** The contract of a dialect: how its objects become a rollout, how a rollout is recorded, and how a target is signalled. */
import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import type { Features } from './features.ts';
import type { Signal } from './signal.ts';
import type { Endpoint, Watched, World } from './world.ts';

/** What the engine asks of every dialect. */
export interface Dialect<P extends KubeObject = KubeObject> extends Features<P> {
  /** Names the dialect in messages, metrics and policies. */
  readonly name: string;
  /** The kind of the plans. */
  readonly plans: Resource<P>;
  /** The kinds that decisions depend on, beside the plans. */
  readonly watched: readonly Watched[];
  /** The recorded rollout, or a new one with its targets resolved from the world; `now` in ms. */
  resolve(plan: P, world: World, now: number): Rollout;
  /** The plan with the rollout recorded in it at `now` (ms). Everything that is not ours stays as it was. */
  project(rollout: Rollout, plan: P, now: number): P;
  /** The object that stands for a target: its labels give the platform, its conditions readiness. */
  objectOf(stage: Stage, target: Target, world: World): KubeObject | undefined;
  /** The API servers that must be ready before a target may start; empty if the dialect knows none. */
  endpoints(world: World): readonly Endpoint[];
  /** How targets are told what to do, and what they report. */
  readonly signal: Signal<P>;
}

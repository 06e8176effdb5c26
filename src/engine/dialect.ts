/** Owns the contract of a dialect: how its objects become a campaign, how a campaign becomes its status, and its signal. */
import type { Resource } from '../kube/resources.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Campaign, Observation, Other, Role, Signalling, Stage, Target } from './model.ts';

/** The objects that stand for targets, as watches show them. */
export interface World {
  list(role: Role): readonly KubeObject[];
  get(role: Role, name: string): KubeObject | undefined;
}

/** Where one controller's API server is asked for its health. */
export interface Endpoint {
  readonly name: string;
  /** Undefined where the object does not tell the address. */
  readonly host: string | undefined;
}

export interface Dialect<P extends KubeObject = KubeObject> {
  readonly name: string;
  readonly plans: Resource<P>;
  /** The objects that stand for targets and carry their signals. */
  readonly objects: Readonly<Record<Role, Resource>>;
  /** The campaign as its status records it, or a new one with its targets resolved from the world; `now` in ms. */
  resolve(plan: P, world: World, now: number): Campaign;
  /** The plan with the status that records the campaign: everything that is not ours stays as it was. */
  project(campaign: Campaign, plan: P): P;
  /** Every controller of the cluster. */
  endpoints(world: World): readonly Endpoint[];
  /** Every object of the world that works for another campaign than this one. */
  others(world: World, campaign: Campaign): readonly Other[];
  readonly signal: Signal;
}

/** How a target is told to move, and how its answer is read. Both are pure: writing is the engine's part. */
export interface Signal {
  read(object: KubeObject, campaign: Campaign, stage: Stage, target: Target): Observation;
  /** The object with the signal on it, named by the target's `since`; everything else on it stays as it was. */
  write(object: KubeObject, campaign: Campaign, signalling: Signalling): KubeObject;
}

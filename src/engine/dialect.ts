/** Owns the contract of a dialect: how its objects become a rollout, how a rollout becomes its status, and its signal. */
import type { KubeClient } from '../kube/client.ts';
import type { Resource } from '../kube/resources.ts';
import type { KubeObject, Node } from '../kube/types.ts';
import type { Signalling } from './model/decided.ts';
import type { ForeignWork, Observation } from './model/observed.ts';
import type { Reason } from './model/reasons.ts';
import type { Rollout, Stage, Target } from './model/recorded.ts';
import type { RolloutPolicy } from './policy/rollout-policy.ts';

/** The objects that a decision may look at, as watches show them. Only what the dialect watches can be asked for. */
export interface World {
  list<T extends KubeObject>(resource: Resource<T>): readonly T[];
  get<T extends KubeObject>(resource: Resource<T>, name: string, namespace?: string): T | undefined;
}

/** One kind that decisions depend on, beside the plans themselves. */
export interface Watched {
  readonly resource: Resource;
  /** All namespaces where absent. */
  readonly namespace?: string | undefined;
  /** Whoever only looks does without it where the cluster lacks the kind, or the right to see it. */
  readonly optional?: boolean;
  /** False for a change that no decision can depend on, such as a heartbeat. */
  isRelevant(before: KubeObject, after: KubeObject): boolean;
  /**
   * What is kept in memory of an object, where there may be thousands: the object without what neither a decision looks
   * at nor a write of it could change. All of it where absent.
   */
  readonly transform?: (object: KubeObject) => KubeObject;
}

/** Where one controller's API server is asked for its health. */
export interface Endpoint {
  readonly name: string;
  /** Undefined where the object does not tell the address. */
  readonly host: string | undefined;
  /** What it runs, where its object tells. */
  readonly version?: string | undefined;
}

export interface Dialect<P extends KubeObject = KubeObject> {
  readonly name: string;
  readonly plans: Resource<P>;
  /** Where plans are carried out; in all namespaces where absent. */
  readonly namespace?: string | undefined;
  /** Which objects of that kind are plans; all of them where absent. */
  readonly fieldSelector?: string | undefined;
  /** False for an object of that kind that is no plan, where no selector could tell; all of them are where absent. */
  isPlan?(object: P): boolean;
  /** Where the rollout is recorded: the subresource that `project` fills, or the object itself. */
  readonly recordedIn: 'status' | 'object';
  /** Where a rollout may be too large for its plan; `resolve` then reads them through the world. */
  readonly shards?: StatusSharding<P>;
  readonly watched: readonly Watched[];
  /** The rollout as it is recorded, or a new one with its targets resolved from the world; `now` in ms. */
  resolve(plan: P, world: World, now: number): Rollout;
  /** The plan with the record of the rollout, written at `now` in ms: everything that is not ours stays as it was. */
  project(rollout: Rollout, plan: P, now: number): P;
  /** The object that stands for a target: its labels tell the platform, its conditions whether it is ready. */
  objectOf(stage: Stage, target: Target, world: World): KubeObject | undefined;
  /** What the object says that it runs; the kubelet's version where absent. */
  versionOf?(object: KubeObject): string | undefined;
  /** Every controller of the cluster. */
  endpoints(world: World): readonly Endpoint[];
  /** True where the plan's status has no room for conditions of ours. */
  readonly conditionsInAnnotation?: boolean;
  /** True where the versions of a plan are those of Kubernetes, and must follow each other as its rules say. */
  readonly judgesVersions?: boolean;
  /** Every object of the world that works for another rollout than this one, where they can. */
  others?(world: World, rollout: Rollout): readonly ForeignWork[];
  /** What holds for the plan where its own words, or the way its work is done, bind it otherwise than its policy does. */
  policyOf?(plan: P, policy: RolloutPolicy): RolloutPolicy;
  /** What stands against a new plan, as only the server can tell; where it cannot be told now, this rejects. */
  preconditions?(client: KubeClient, plan: P, abort?: AbortSignal): Promise<readonly Reason[]>;
  /** What the leader does for targets that ask for it; nothing where absent. */
  readonly care?: Care;
  /** Every Node of the cluster, where the health of the whole can be told. */
  fleet?(world: World): readonly Node[];
  /** What plans that are gone left at work, each as a rollout that is over, with what is known of its plan. */
  orphanedPlans?(world: World, plans: readonly P[]): readonly OrphanedPlan<P>[];
  readonly signal: Signal<P>;
}

export interface OrphanedPlan<P extends KubeObject = KubeObject> {
  readonly rollout: Rollout;
  readonly plan: P;
}

/** How targets let the leader cordon, drain and uncordon for them. Nodes must be among what the dialect watches. */
export interface Care {
  /** The Node that the target's pods run on; undefined where it has none. */
  nodeOf(stage: Stage, target: Target, world: World): Node | undefined;
  /** True where no target has to be asked whether it leaves that to the leader. */
  readonly always?: boolean;
  /** Asks one of them. */
  drainDelegations?(
    client: KubeClient,
    stage: Stage,
    target: Target,
    world: World,
    abort?: AbortSignal,
  ): Promise<boolean>;
}

/**
 * How a target is told to move, and how its answer is read. All of it is pure: carrying it out is the engine's part.
 * `plan` is the object that the rollout was resolved from.
 */
export interface Signal<P extends KubeObject = KubeObject> {
  read(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): Observation;
  /** What tells the target to move, named by its `since`; undefined where its object is not there to be told. */
  send(world: World, rollout: Rollout, signalling: Signalling, plan: P): Instruction | undefined;
  /** What tells a target that asked for something that it is done; `now` in milliseconds is when. */
  acknowledge?(world: World, rollout: Rollout, stage: Stage, target: Target, now: number): Instruction | undefined;
  /** What ends the target's work before it touches its service; `reason` is for whoever looks at it. */
  cancel?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    reason: Reason,
    now: number,
  ): Instruction | undefined;
  /** What has to be done once a target is proven done, before that is recorded; may be repeated. */
  finish?(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): Instruction | undefined;
}

/** An effect as data, harmless when it is repeated. */
export type Instruction =
  /** Writes the object only where it still is as it was seen. */
  | { readonly kind: 'replace'; readonly resource: Resource; readonly object: KubeObject }
  /** One that exists already under its name counts as created. */
  | { readonly kind: 'create'; readonly resource: Resource; readonly object: KubeObject }
  /** Begins work outside the API; resolves once it is begun, and begins nothing where it is under way. */
  | { readonly kind: 'begin'; begin(): Promise<void> };

/** The objects beside a plan over which the record of a large rollout is spread. */
export interface StatusSharding<P extends KubeObject> {
  /** Of the record that `project` made of the plan at `now` in ms: what it is to hold, and what is written before that. */
  split(plan: P, record: P, world: World, now: number): Split<P>;
  /** The status shards that hold these targets, as the world shows them; none where the plan holds everything. */
  holding(plan: P, targets: readonly Target[], world: World): readonly WorldObject[];
}

export interface Split<P extends KubeObject> {
  readonly plan: P;
  /** Status shards that are not as recorded yet. Whatever comes to its end stands in them before the plan ceases to list it. */
  readonly writes: readonly Instruction[];
  /** The plan with counts for people in its metadata, where they are due: written before its status. */
  readonly counted?: P | undefined;
}

/** An object of the world on which a decision rests. */
export interface WorldObject {
  readonly resource: Resource;
  readonly object: KubeObject;
}

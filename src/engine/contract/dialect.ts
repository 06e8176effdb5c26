/** The contract of a dialect: how its objects become a rollout, how a rollout is recorded, and how a target is signalled. */
import type { KubeClient, Selection } from '../../kube/client.ts';
import type { KubeObject, Node, Resource } from '../../kube/resources.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import type { AgentPolicy } from '../../signal/annotations.ts';
import type {
  ClaimNeed,
  DownloadState,
  ForeignWork,
  Observation,
  Obstacle,
  PrefetchState,
  Signalling,
  UnnamedCordon,
} from '../model/decision.ts';
import type { Reason, ReportedEvent } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import type { RecordedRun } from '../model/runs.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/** The objects that a decision may look at, as watches show them. Only watched kinds can be read. */
export interface World {
  list<T extends KubeObject>(resource: Resource<T>): readonly T[];
  get<T extends KubeObject>(resource: Resource<T>, name: string, namespace?: string): T | undefined;
  /** Names of the objects whose own write the watch has not shown yet: it may lack earlier writes of others, too. */
  outdated?(resource: Resource): ReadonlySet<string>;
}

/** What the engine asks of every dialect. */
export interface Dialect<P extends KubeObject = KubeObject> extends Capabilities<P> {
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

/** Features that only some dialects have. Where a member is absent, the engine does without its feature. */
interface Capabilities<P extends KubeObject> {
  /** An edit of an ended plan starts nothing. */
  readonly endsForGood?: true;
  /** How such a plan starts again after an edit, where a policy says so. */
  readonly restarts?: {
    /** Of the run that is recorded; undefined if that is the first one. */
    recordOf(plan: P): RecordedRun | undefined;
    /** The plan as it was before its first run, except for what people wrote. */
    withoutRecord(plan: P): P;
  };
  /** Limits which objects of the kind are plans; otherwise all of them are, in all namespaces. */
  readonly scope?: Pick<Selection, 'namespace' | 'fieldSelector'> & { isPlan?(object: P): boolean };
  /** What the keys of controls on a plan begin with, where others read its annotations too. */
  readonly controlPrefix?: string;
  /** The record stands in the plan's status, whose schema has room for our conditions or not; absent: in the object itself. */
  readonly statusRecord?: 'with-conditions' | 'without-conditions';
  /** Name of the Cluster that the plan is of, where there are several. */
  clusterOf?(plan: P): string | undefined;
  /** One sentence for read-only commands: what could not be found out, as the plan's status says; undefined if nothing. */
  unknownOf?(plan: P): string | undefined;
  /** Sentences that people should read; no decision depends on them. `plans`: all plans that this one is compared with. */
  warnings?(plan: P, world: World, plans: readonly KubeObject[]): readonly string[];
  /** Replaces our Events about the recorded `rollout` where users know the Events of another tool; then targets get none. */
  planEvents?(
    before: P,
    after: P,
    rollout: Rollout,
    ours: readonly ReportedEvent[],
  ): readonly ReportedEvent[];
  /**
   * Records in the plan what its targets stall on. `stalls` has one entry for each message, true if it has lasted for a while.
   * Returns the same object if nothing changes; `now` in ms.
   */
  withStalls?(plan: P, stalls: ReadonlyMap<string, boolean>, now: number): P;
  /** Returns what `withStalls` recorded, for read-only commands; undefined if nothing stalls. */
  stallsOf?(plan: P): string | undefined;
  /** How the record of a large rollout is spread over several objects. */
  readonly shards?: StatusSharding<P>;
  /** The order of targets depends on the plan's uid. A plan that is only in a file has none, so its order is unknown. */
  readonly ordersByUid?: true;
  /** The plan's versions are Kubernetes versions, so the version skew rules apply. */
  readonly versions?: {
    /** The version that the object of a target reports; undefined if it reports none. */
    of(object: KubeObject): string | undefined;
    /** True if the object proves that its node runs exactly this version. */
    runs?(object: KubeObject, version: string): boolean;
  };
  /** True if the object of a target shows that it runs an older version than its stage upgrades to. */
  isBehind?(object: KubeObject, stage: Stage, plan: P): boolean;
  /**
   * Changes the policy by what the plan itself says, or by how the work of the plan is done.
   * The controller passes no `world`; read-only commands do, and the dialect infers from it how the work is done.
   */
  readonly planRules?: { apply(plan: P, policy: RolloutPolicy, world?: World): RolloutPolicy };
  /** Checks a new plan by requests to the API server. Rejects when the server gives no answer. */
  readonly preconditions?: {
    /** Returns why the plan must not start yet; empty if nothing is in its way. */
    unmet(client: KubeClient, plan: P, abort?: AbortSignal): Promise<readonly Reason[]>;
  };
  /** Which targets leave cordon, drain and uncordon to the leader; absent: none. */
  readonly drainDelegation?: DrainDelegation;
  /** Which nodes work for other plans; absent: that is not looked at. */
  readonly foreignWork?: ForeignWorkFinder;
  /** When the Node of a target is claimed before the target starts: other processes may start on it, or share a limit. */
  claims?(node: Node): ClaimNeed | undefined;
  /** True if some plan, deleted or not, works on the Node, whatever is recorded: then its claim stays. */
  isAtWork?(world: World, node: Node): boolean;
  /** Returns the name of the plan that the work of this one would wait for; undefined if there is none. */
  awaits?(plan: P, world: World): string | undefined;
  /**
   * Returns the name of the other plan that works on the node of the target, where only one plan at a time may, or what else
   * keeps the target from starting; undefined if nothing does.
   */
  occupantOf?(world: World, target: Target, plan: P): string | Obstacle | undefined;
  /** Tells whose cordon is on the Node of the target, where the cordon itself names no owner; undefined if that is not known. */
  unnamedCordon?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): UnnamedCordon | undefined;
  /** Agents on nodes carry out the signals. */
  readonly agents?: {
    /** What the object of a target says about the agent on its node. */
    of(object: KubeObject): NodeAgent;
    /** Why the host cannot run the version, as the object says; undefined if it can, or if nothing is known. */
    unfitFor?(object: KubeObject, version: string): string | undefined;
  };
  /** Finds work whose plan is gone, each as a rollout that is over, so that the leader can end it; `plans` still exist. */
  readonly orphanedWork?: { plans(world: World, plans: readonly P[]): readonly OrphanedPlan<P>[] };
}

/** Spreads the record of a large rollout over several objects; `resolve` reads them through the world. */
export interface StatusSharding<P extends KubeObject> {
  /** `record` is what `project` made of the plan at `now` (ms). */
  spread(plan: P, record: P, world: World, now: number): ShardedRecord<P>;
  /** The status shards that hold these targets; none if the plan holds everything. */
  holding(plan: P, targets: readonly Target[], world: World): readonly WorldObject[];
}

/** The leader cordons, drains and uncordons for targets. Such a dialect must watch Nodes. */
export interface DrainDelegation {
  /** The Node that the target's pods run on; undefined if the leader must not drain for it. */
  nodeOf(stage: Stage, target: Target, world: World): Node | undefined;
  /** True if every target leaves its drain to the leader, so none is asked. */
  readonly always?: boolean;
  /** Asks the API server whether this target leaves its drain to the leader. Rejects when the server gives no answer. */
  isDelegated?(
    client: KubeClient,
    stage: Stage,
    target: Target,
    world: World,
    abort?: AbortSignal,
  ): Promise<boolean>;
}

/** Finds nodes that work for another plan: they count against the limits of this one. */
export interface ForeignWorkFinder {
  /** Returns the work of other plans that counts. */
  list(world: World, rollout: Rollout): readonly ForeignWork[];
  /** Returns the names of nodes with a signal that no leader sent: their work does not count, but people should know. */
  unproven?(world: World, rollout: Rollout): readonly string[];
}

/** Work whose plan was deleted; `plan` stands for the deleted object. */
export interface OrphanedPlan<P extends KubeObject = KubeObject> {
  readonly rollout: Rollout;
  readonly plan: P;
}

/** A kind that is watched, and which of its objects and changes matter. */
export interface Watched extends Selection {
  readonly resource: Resource;
  /** Only the objects that plans name are watched, one by one, so that a role can name them. */
  readonly namesIn?: (plan: KubeObject) => readonly string[];
  /** True if read-only commands work without it, when the kind or the right to read it is missing. */
  readonly optional?: boolean;
  /**
   * No decision depends on it, only what people read: the leader also works without the right to read it.
   * `isRelevant` compares an object that comes or goes with an empty one.
   */
  readonly advisory?: boolean;
  /** The kind is read only once this returns true, because few decisions need it. Decisions before that do not wait for it. */
  isNeeded?(world: World, now: number): boolean;
  /** True if the user may not read it: then it looks empty. */
  readonly unreadable?: boolean;
  /** False for a change that no decision depends on, such as a heartbeat. */
  isRelevant(before: KubeObject, after: KubeObject): boolean;
  /** What the cache keeps of an object: everything that decisions read and that writes must not lose. */
  readonly transform?: (object: KubeObject) => KubeObject;
}

/** An API server of the control plane. */
export interface Endpoint {
  /** Names the API server for people. */
  readonly name: string;
  /** Its address; undefined if nothing tells it. */
  readonly host: string | undefined;
  /** The Kubernetes version that it is known to run. */
  readonly version?: string | undefined;
}

/** How a target is signalled and how its report is read. Pure: the engine carries out the instructions. */
export interface Signal<P extends KubeObject = KubeObject> {
  /** Tells what the target does about its last signal of this rollout. */
  read(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): Observation;
  /** For dialects whose targets are Nodes that report nothing themselves: the names of the Nodes with work. The other targets exist, and do nothing. */
  observable?(world: World): Pick<ReadonlyMap<string | undefined, unknown>, 'has'>;
  /** The version that the last signal of this rollout asked for, where an edit of an ended plan starts no other rollout. */
  askedOf?(world: World, rollout: Rollout, stage: Stage, target: Target): string | undefined;
  /** Starts the attempt named by the target's `since`; undefined if its object does not exist. */
  send(world: World, rollout: Rollout, signalling: Signalling, plan: P): MaybeInstruction;
  /** The object that shows whether the target has its signal; undefined if the signal writes no object. */
  touches(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): TouchedObject | undefined;
  /** Tells the target that the leader did what it waits for; `now` in ms. */
  acknowledge?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    now: number,
  ): MaybeInstruction;
  /** Ends the attempt before it touches the service. */
  cancel?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    reason: Reason,
    now: number,
  ): MaybeInstruction;
  /** Whether the target could fetch its payload before its turn, or was asked to; undefined if it cannot. */
  prefetchOf?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
  ): PrefetchState | undefined;
  /** Asks the target to fetch its payload before its turn. The signal replaces this request. */
  prefetch?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): MaybeInstruction;
  /** Ends the request of `prefetch`, and that of `checkDownloads`; undefined if the target has neither. */
  endPrefetch?(world: World, stage: Stage, target: Target): MaybeInstruction;
  /** What the target said about all its downloads; undefined if it cannot say anything. */
  downloadsOf?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
  ): DownloadState | undefined;
  /** Asks the target whether it could download what this rollout needs. The signal ends this request. */
  checkDownloads?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): MaybeInstruction;
  /**
   * Must be carried out before a target is recorded as intended, or as failed. It is also carried out for an intended target
   * that another version of Refit has recorded.
   */
  remember?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): MaybeInstruction;
  /** Must be carried out after the target is verified and before it is recorded as done. */
  finish?(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): MaybeInstruction;
}

/** Undefined if nothing needs to be written. */
type MaybeInstruction = Instruction | undefined;

/** An effect as data; it does no harm when repeated. */
export type Instruction =
  /** Writes the object only if it is unchanged on the server. */
  | { readonly kind: 'replace'; readonly resource: Resource; readonly object: KubeObject }
  /** An existing object of that name counts as created. */
  | { readonly kind: 'create'; readonly resource: Resource; readonly object: KubeObject }
  /** Deletes it in the background, only if it is unchanged on the server. */
  | { readonly kind: 'delete'; readonly resource: Resource; readonly object: KubeObject }
  /** Starts work outside the API, unless it runs already; resolves once it runs. */
  | { readonly kind: 'begin'; begin(): Promise<void> };

/** A record that is spread over status shards. */
export interface ShardedRecord<P extends KubeObject> {
  /** The plan as it is to be written, without what the shards hold. */
  readonly plan: P;
  /** Writes of changed status shards. They come first, so that a finished target is always recorded somewhere. */
  readonly writes: readonly Instruction[];
  /** The plan with counts for people in its metadata, when they are due: written before its status. */
  readonly counted?: P | undefined;
}

/** An object with the resource that it is written to. */
export interface WorldObject {
  readonly resource: Resource;
  readonly object: KubeObject;
}

export interface TouchedObject extends WorldObject {
  /** True if the signal creates it. Otherwise the signal replaces or deletes it as it was observed. */
  readonly isAbsent?: boolean;
}

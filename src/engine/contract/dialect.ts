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

export interface Dialect<P extends KubeObject = KubeObject> extends Capabilities<P> {
  readonly name: string;
  readonly plans: Resource<P>;
  /** The kinds that decisions depend on, beside the plans. */
  readonly watched: readonly Watched[];
  /** The recorded rollout, or a new one with its targets resolved from the world; `now` in ms. */
  resolve(plan: P, world: World, now: number): Rollout;
  /** The plan with the rollout recorded in it at `now` (ms). Everything that is not ours stays as it was. */
  project(rollout: Rollout, plan: P, now: number): P;
  /** The object that stands for a target: its labels give the platform, its conditions readiness. */
  objectOf(stage: Stage, target: Target, world: World): KubeObject | undefined;
  endpoints(world: World): readonly Endpoint[];
  readonly signal: Signal<P>;
}

/** What only some dialects bring. Without a capability the engine does without the feature. */
interface Capabilities<P extends KubeObject> {
  /** An edit of an ended plan starts nothing. */
  readonly endsForGood?: true;
  /** How such a plan starts again where a policy says so. */
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
  /** What the plan's status says could not be found out, in one sentence, for read-only commands. */
  unknownOf?(plan: P): string | undefined;
  /** What people should know and what decides nothing, one sentence each. `plans`: all that it is compared with. */
  warnings?(plan: P, world: World, plans: readonly KubeObject[]): readonly string[];
  /** The Events of a record of `rollout`, where users know others than ours; then targets have none. */
  planEvents?(
    before: P,
    after: P,
    rollout: Rollout,
    ours: readonly ReportedEvent[],
  ): readonly ReportedEvent[];
  /** The plan with what its targets stall on, by message, true if it has lasted; the same object if nothing changes. */
  withStalls?(plan: P, stalls: ReadonlyMap<string, boolean>, now: number): P;
  /** What was written so, for read-only commands. */
  stallsOf?(plan: P): string | undefined;
  readonly shards?: StatusSharding<P>;
  readonly ordersByUid?: true;
  /** The plan's versions are Kubernetes versions, so the version skew rules apply. */
  readonly versions?: {
    of(object: KubeObject): string | undefined;
    /** True if the object proves that its node runs exactly this version. */
    runs?(object: KubeObject, version: string): boolean;
  };
  /** True if the object of a target shows that it runs an older version than its stage upgrades to. */
  isBehind?(object: KubeObject, stage: Stage, plan: P): boolean;
  /** Changes the policy by what the plan itself says, or by how its work is done: `world` shows that to who is not the controller. */
  readonly planRules?: { apply(plan: P, policy: RolloutPolicy, world?: World): RolloutPolicy };
  /** Checks a new plan by requests to the API server. Rejects when the server gives no answer. */
  readonly preconditions?: {
    unmet(client: KubeClient, plan: P, abort?: AbortSignal): Promise<readonly Reason[]>;
  };
  readonly drainDelegation?: DrainDelegation;
  readonly foreignWork?: ForeignWorkFinder;
  /** When the Node of a target is claimed before the target starts: other processes may start on it, or share a limit. */
  claims?(node: Node): ClaimNeed | undefined;
  /** True if some plan, deleted or not, works on the Node, whatever is recorded: then its claim stays. */
  isAtWork?(world: World, node: Node): boolean;
  /** Names the plan that the work of this one would wait for. */
  awaits?(plan: P, world: World): string | undefined;
  /** Names the other plan that works on the node of the target, where one plan at a time may, or says what else is in the way. */
  occupantOf?(world: World, target: Target, plan: P): string | Obstacle | undefined;
  /** Whose cordon the Node of the target bears, where that names no owner; undefined if it is not known. */
  unnamedCordon?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): UnnamedCordon | undefined;
  /** Agents on nodes carry out the signals: which one a target's object speaks of. */
  readonly agents?: {
    of(object: KubeObject): NodeAgent;
    /** Why, as the object says, its host cannot run the version. */
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

/** The leader cordons, drains and uncordons for targets. Nodes must be watched. */
export interface DrainDelegation {
  /** The Node that the target's pods run on; undefined if the leader must not drain for it. */
  nodeOf(stage: Stage, target: Target, world: World): Node | undefined;
  /** True if every target leaves its drain to the leader, so none is asked. */
  readonly always?: boolean;
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
  list(world: World, rollout: Rollout): readonly ForeignWork[];
  /** Nodes whose signal no leader sent: they do not count, but people should know. */
  unproven?(world: World, rollout: Rollout): readonly string[];
}

export interface OrphanedPlan<P extends KubeObject = KubeObject> {
  readonly rollout: Rollout;
  readonly plan: P;
}

export interface Watched extends Selection {
  readonly resource: Resource;
  /** Only the objects that plans name are watched, one by one, so that a role can name them. */
  readonly namesIn?: (plan: KubeObject) => readonly string[];
  /** True if read-only commands work without it, when the kind or the right to read it is missing. */
  readonly optional?: boolean;
  /** No decision depends on it, only what is said: the leader works without the right to read it. What comes, or goes, is compared with an empty object. */
  readonly advisory?: boolean;
  /** Nothing is read before this is true: what few decisions need costs the others nothing. Nobody waits for it. */
  isNeeded?(world: World, now: number): boolean;
  /** True if it may not be read: it looks empty. */
  readonly unreadable?: boolean;
  /** False for a change that no decision depends on, such as a heartbeat. */
  isRelevant(before: KubeObject, after: KubeObject): boolean;
  /** What the cache keeps of an object: everything that decisions read and that writes must not lose. */
  readonly transform?: (object: KubeObject) => KubeObject;
}

export interface Endpoint {
  readonly name: string;
  readonly host: string | undefined;
  readonly version?: string | undefined;
}

/** How a target is signalled and how its report is read. Pure: the engine carries out the instructions. */
export interface Signal<P extends KubeObject = KubeObject> {
  read(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): Observation;
  /** Where targets are Nodes that report nothing themselves: the names of those with work. The others exist, and do nothing. */
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
  /** Asks for that. The signal replaces it. */
  prefetch?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): MaybeInstruction;
  /** Ends that, and the check below. */
  endPrefetch?(world: World, stage: Stage, target: Target): MaybeInstruction;
  /** What the target said about all its downloads; undefined if it cannot say anything. */
  downloadsOf?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
  ): DownloadState | undefined;
  /** Asks it. The signal ends that. */
  checkDownloads?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    agent: AgentPolicy,
  ): MaybeInstruction;
  /** Carried out before a target is recorded as intended, also by a version that takes it over, or as failed. */
  remember?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): MaybeInstruction;
  /** Carried out after the target is verified and before it is recorded as done. */
  finish?(world: World, rollout: Rollout, stage: Stage, target: Target, plan: P): MaybeInstruction;
}

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

export interface ShardedRecord<P extends KubeObject> {
  readonly plan: P;
  /** Writes of changed status shards. They come first, so that a finished target is always recorded somewhere. */
  readonly writes: readonly Instruction[];
  /** The plan with counts for people in its metadata, when they are due: written before its status. */
  readonly counted?: P | undefined;
}

export interface WorldObject {
  readonly resource: Resource;
  readonly object: KubeObject;
}

export interface TouchedObject extends WorldObject {
  /** True if the signal creates it. Otherwise the signal replaces or deletes it as it was observed. */
  readonly isAbsent?: boolean;
}

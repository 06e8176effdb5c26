/** The optional features of a dialect, one interface for each. The engine does without a feature that a dialect lacks. */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { KubeClient, Selection } from '../../kube/client.ts';
import type { KubeObject, Node } from '../../kube/resources.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import type {
  ClaimNeed,
  ForeignWork,
  JoinedTarget,
  Obstacle,
  UnnamedCordon,
} from '../model/decision.ts';
import type { Reason, ReportedEvent } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import type { RecordedRun } from '../model/runs.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Instruction } from './signal.ts';
import type { World, WorldObject } from './world.ts';

/** The features that only some dialects have. The comment of each feature also says what happens in a dialect that lacks it. */
export interface Features<P extends KubeObject> {
  /** Says which objects are plans. Without it, every object of the kind is a plan, in all namespaces. */
  readonly planObjects?: PlanObjects<P>;
  /** Keeps the record in the plan's status. Without it, a record is written together with the rest of the object. */
  readonly statusRecord?: StatusRecord<P>;
  /** Lets an ended plan run again. Without it, `resolve` itself returns a new rollout after an edit. */
  readonly reruns?: Reruns<P>;
  /** True if the record can keep that a target was skipped. Without it, the plan does not end while a target is held. */
  readonly recordsSkips?: true;
  /**
   * Returns the targets that the plan selects or lists, while it runs, and that its record lacks. Their state is `pending` since `now`
   * (ms). Without it, `resolve` itself adds such targets, or they are unknown.
   */
  joinedTargets?(plan: P, world: World, now: number): readonly JoinedTarget[];
  /** True if the leader may try failed targets again by itself, as a policy says. Without it, only a person does. */
  readonly ordersRetries?: true;
  /** Adds to what users read about plans. Without it, users read only what the engine says about the plans of every dialect. */
  readonly reporting?: Reporting<P>;
  /** Compares versions of nodes with those of the plan. Without it, the engine compares none. */
  readonly versions?: Versions<P>;
  /** Adds the rules of the plan to the policy. Without it, only the UpgradePolicy and the defaults apply. */
  readonly planRules?: PlanRules<P>;
  /** Checks a new plan before it starts. Without it, the plan starts without such a check. */
  readonly preconditions?: Preconditions<P>;
  /** Lets the leader cordon, drain and uncordon. Without it, every target does that itself. */
  readonly drainDelegation?: DrainDelegation<P>;
  /** Keeps two plans from working on one Node. Without it, other plans on a Node do not matter, and no Node is claimed. */
  readonly nodeSharing?: NodeSharing<P>;
  /** Counts nodes that work for other plans. Without it, their work does not count against the limits of this plan. */
  readonly foreignWork?: ForeignWorkFinder;
  /** Describes the agents on nodes. Without it, the signals need no agent. */
  readonly agents?: Agents;
  /** Says where the NodeRollout of a plan is. Without it, it is beside its plan, and a plan without a namespace has none. */
  readonly nodeRollouts?: NodeRolloutPlace<P>;
  /**
   * Takes the targets of a failed run back to their earlier versions. Without it, only people do that, and a policy that asks for a
   * roll-back only stops the plan.
   */
  readonly rollBack?: RollBack<P>;
  /** Finds work whose plan was deleted. Without it, a deleted plan leaves no work that the leader must end. */
  readonly orphanedWork?: OrphanedWork<P>;
}

/** Selects which objects of the kind are plans, and states what is special about these objects. */
export interface PlanObjects<P extends KubeObject>
  extends Pick<Selection, 'namespace' | 'fieldSelector'> {
  /** Returns true if the object is a plan. Without this member, every selected object is one. */
  isPlan?(object: P): boolean;
  /**
   * The prefix of the annotation keys that pause, resume, abort or retry a plan; set if other software reads the plan's annotations,
   * too.
   */
  readonly controlPrefix?: string;
  /** True if the order of targets depends on the plan's uid. The order of a plan that exists only in a file is then unknown. */
  readonly ordersByUid?: boolean;
}

/** Describes a record that is in the status of the plan. The status is written as a subresource. */
export interface StatusRecord<P extends KubeObject> {
  /** True if the schema of the status has conditions, which `project` writes. Otherwise the engine writes them to an annotation. */
  readonly hasConditions: boolean;
  /** Spreads the record of a large rollout over several objects. Without it, the plan holds every record. */
  readonly shards?: StatusSharding<P>;
}

/** Spreads the record of a large rollout over several objects; `resolve` reads them through the world. */
export interface StatusSharding<P extends KubeObject> {
  /** Returns how to write `record`, which is what `project` made of the plan at `now` (ms). */
  spread(plan: P, record: P, world: World, now: number): ShardedRecord<P>;
  /** Returns the status shards that hold these targets; empty if the plan holds everything. */
  holding(plan: P, targets: readonly Target[], world: World): readonly WorldObject[];
}

/** A record that is spread over status shards. */
export interface ShardedRecord<P extends KubeObject> {
  /** The plan as it must be written, without what the shards hold. */
  readonly plan: P;
  /** The writes of changed status shards. They come first, so that a finished target is always recorded somewhere. */
  readonly writes: readonly Instruction[];
  /**
   * The plan with the counts that people read in its metadata. It is written before the status.
   * Undefined if no counts are due.
   */
  readonly counted?: P | undefined;
}

/**
 * Lets an ended plan run again. An edit starts a new run only if a policy allows it. If a rollout
 * has `ignoresEdits`, its record keeps the spec that it started with, and `resolve` uses that spec
 * instead of the one in the plan.
 */
export interface Reruns<P extends KubeObject> {
  /** Returns the run that the plan records; undefined if the plan records its first run. */
  recordOf(plan: P): RecordedRun | undefined;
  /** Returns the plan without the record of its runs, but with everything that people have written into it. */
  withoutRecord(plan: P): P;
  /** Returns the version that the last signal of this rollout asked the target for; undefined if the target has no such signal. */
  askedOf(world: World, rollout: Rollout, stage: Stage, target: Target): string | undefined;
}

/** What users read about plans. No decision of the leader depends on these members. */
export interface Reporting<P extends KubeObject> {
  /** Returns the name of the Cluster that the plan belongs to; undefined if the plan names none. */
  clusterOf?(plan: P): string | undefined;
  /** Returns one sentence about what the controller could not find out, from the plan's status; undefined if it found out everything. */
  unknownOf?(plan: P): string | undefined;
  /** Returns sentences about the plan that people should read; empty if there are none. `plans` are all plans to compare it with. */
  warnings?(plan: P, world: World, plans: readonly KubeObject[]): readonly string[];
  /**
   * Returns the Events about the change from `before` to `after`, in the words of another tool that users know. They replace
   * `ours`, which are the engine's Events about the recorded `rollout`. The engine then sends no Events about targets.
   */
  planEvents?(
    before: P,
    after: P,
    rollout: Rollout,
    ours: readonly ReportedEvent[],
  ): readonly ReportedEvent[];
  /**
   * Shows in the plan's status why its targets make no progress. Without it, only Events show that.
   */
  readonly stalls?: StallRecord<P>;
}

/** Shows in the status of a plan why its targets make no progress. */
export interface StallRecord<P extends KubeObject> {
  /**
   * Returns the plan with these stalls in its status, or the same object if nothing changes. `stalls` has one entry for each
   * message; its value is true if the stall has lasted for a while. `now` is in milliseconds.
   */
  record(plan: P, stalls: ReadonlyMap<string, boolean>, now: number): P;
  /** Returns what `record` wrote, for read-only commands; undefined if nothing stalls. */
  of(plan: P): string | undefined;
}

/** Compares the versions of nodes with those of the plan. */
export interface Versions<P extends KubeObject> {
  /** Returns true if the object of a target shows that it runs an older version than its stage upgrades to. */
  isBehind(object: KubeObject, stage: Stage, plan: P): boolean;
  /** The plan's versions are Kubernetes versions, and the version skew rules apply to them. Without it, they do not apply. */
  readonly skewRules?: SkewRules;
}

/** What the version skew rules need to know about the object of a target. */
export interface SkewRules {
  /** Returns the version that the object reports; undefined if it reports none. */
  versionOf(object: KubeObject): string | undefined;
  /** Returns true if the object proves that its node runs exactly this version. */
  runs(object: KubeObject, version: string): boolean;
}

/** Rules that the plan itself states, or that follow from how its work is done. */
export interface PlanRules<P extends KubeObject> {
  /**
   * Returns the policy, changed by these rules. The controller passes no `world`. Read-only commands pass it, and the dialect
   * infers from it how the controller does the work.
   */
  apply(plan: P, policy: RolloutPolicy, world?: World): RolloutPolicy;
}

/** Checks a new plan by requests to the API server. */
export interface Preconditions<P extends KubeObject> {
  /** Returns the reasons why the plan must not start yet; empty if it may start. Rejects if the API server does not answer. */
  unmet(client: KubeClient, plan: P, abort?: AbortSignal): Promise<readonly Reason[]>;
}

/** The leader cordons, drains and uncordons for targets. A dialect with this feature must watch Nodes. */
export interface DrainDelegation<P extends KubeObject = KubeObject> {
  /** Returns the Node that the target's pods run on; undefined if the leader must not drain that Node for the target. */
  nodeOf(stage: Stage, target: Target, world: World): Node | undefined;
  /** True if every target leaves its drain to the leader. Then `isDelegated` is not called. */
  readonly always?: boolean;
  /** Asks the API server whether the target leaves its drain to the leader. Rejects if the API server does not answer. */
  isDelegated?(
    client: KubeClient,
    stage: Stage,
    target: Target,
    world: World,
    abort?: AbortSignal,
  ): Promise<boolean>;
  /**
   * Returns who cordoned the Node of the target, for a cordon that names no owner itself; undefined
   * if that is unknown. A dialect lacks this member if all of its cordons name their owner.
   */
  unnamedCordon?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): UnnamedCordon | undefined;
}

/** How plans share Nodes with other plans and with other processes. */
export interface NodeSharing<P extends KubeObject> {
  /**
   * Returns what keeps the target from starting: another plan that works on its Node, by name, or
   * another obstacle. Only dialects whose Nodes take one plan at a time name a plan. Undefined if
   * the target may start.
   */
  occupantOf(world: World, target: Target, plan: P): string | Obstacle | undefined;
  /** Returns the name of another plan that must end before the targets of `plan` can do their work; undefined if there is none. */
  awaits?(plan: P, world: World): string | undefined;
  /** The leader claims Nodes before targets start on them. Without it, Nodes are not claimed. */
  readonly claims?: NodeClaims;
}

/** When a Node is claimed, and how long the claim stays. */
export interface NodeClaims {
  /** Returns when the leader must claim the Node before a target starts on it; undefined if the Node needs no claim. */
  needOf(node: Node): ClaimNeed | undefined;
  /**
   * Returns true if any plan works on the Node, even if that plan was deleted or its record says
   * otherwise. The claim stays as long as this is true.
   */
  isAtWork(world: World, node: Node): boolean;
}

/** Finds nodes that work for other plans. Such nodes count against the limits of this plan. */
export interface ForeignWorkFinder {
  /** Returns the work of other plans that counts against the limits of this rollout. */
  list(world: World, rollout: Rollout): readonly ForeignWork[];
  /** Returns the names of nodes with a signal that no leader sent: their work does not count, but people should know. */
  unproven?(world: World, rollout: Rollout): readonly string[];
}

/** Agents on nodes carry out the signals. */
export interface Agents {
  /** Returns what the object of a target says about the agent on its node. */
  of(object: KubeObject): NodeAgent;
  /** Returns why the host cannot run the version, as the object says; undefined if it can, or if nothing is known. */
  unfitFor?(object: KubeObject, version: string): string | undefined;
}

/** Says in which namespace the NodeRollout of a plan is, and which object it is about, for plans whose kind has no namespace. */
export interface NodeRolloutPlace<P extends KubeObject> {
  /** The namespace for plans that have none. */
  readonly namespace?: string;
  /** Returns the object that people know as the plan, if `plan` is not that object itself; undefined for an object that is no plan. */
  subjectOf?(plan: P): Readonly<Record<'namespace' | 'name', string>> | undefined;
}

/** Takes the targets of a failed run back to their earlier versions without a person, or says what people do instead. */
export type RollBack<P extends KubeObject> = RollBackByLeader<P> | RollBackByHand;

/** The leader rolls the run back by a new run of the same plan, so the dialect must have `reruns`. */
export interface RollBackByLeader<P extends KubeObject> {
  /**
   * Returns the plan with the spec that rolls the run back, what the leader waits for before it can roll back, or why it must never roll
   * back. `now` is in milliseconds.
   */
  planBack(
    scene: RollBackScene<P>,
    now: number,
  ): RollBackPlan<P> | RollBackDelay | RollBackObstacle;
}

export interface RollBackByHand {
  /** Two clauses: why the leader cannot roll the run back, and what people do instead. */
  readonly byHand: string;
}

/** A failed run of a plan, with what the NodeRollout records about this run and earlier ones. */
export interface RollBackScene<P extends KubeObject> {
  readonly plan: P;
  readonly rollout: Rollout;
  readonly world: World;
  /** The run to roll back, as it was recorded after its end. */
  readonly run: NodeRolloutRun;
  /** All recorded runs, the newest first. */
  readonly history: readonly NodeRolloutRun[];
}

export interface RollBackPlan<P extends KubeObject> {
  readonly plan: P;
  /** The names of the targets that go back to their earlier versions. */
  readonly names: readonly string[];
}

/** The roll-back cannot begin yet. The leader decides again after `leftMs`, and when an object that it watches changes. */
export interface RollBackDelay {
  /** A sentence without a full stop: what is not known about the targets yet. */
  readonly awaits: string;
  readonly leftMs: number;
}

export interface RollBackObstacle {
  /** A sentence without a full stop: why the leader must not roll the run back. */
  readonly obstacle: string;
}

/** Finds work whose plan is gone, so that the leader can end it. */
export interface OrphanedWork<P extends KubeObject> {
  /** Returns the work of each deleted plan, as a rollout that is over. `plans` are the plans that still exist. */
  plans(world: World, plans: readonly P[]): readonly OrphanedPlan<P>[];
}

/** Work whose plan was deleted. */
export interface OrphanedPlan<P extends KubeObject = KubeObject> {
  readonly rollout: Rollout;
  /** A stand-in for the deleted plan, with its name and uid. */
  readonly plan: P;
}

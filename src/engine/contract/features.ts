/**
 * The optional features of a dialect, with one interface for each feature. If a dialect lacks a feature, the engine
 * works without it.
 */

import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { KubeClient, Selection } from '../../kube/client.ts';
import type { KubeObject, Node } from '../../kube/resources.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import type { ApiServer } from '../../versions/plan-rules.ts';
import type { AwaitedPlan } from '../model/awaited-plan.ts';
import type { ClaimNeed, Obstacle, UnnamedCordon } from '../model/facts.ts';
import type { FailureReasons } from '../model/failures.ts';
import type { JoinedTarget } from '../model/joined-target.ts';
import type { Reason, ReportedEvent } from '../model/reasons.ts';
import type { Rollout, Stage, Target, TurnTime } from '../model/rollout.ts';
import type { RecordedRun } from '../model/runs.ts';
import type { ForeignWork } from '../model/snapshot.ts';
import type { VersionGap } from '../model/version-gap.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Instruction, TargetWrite } from './signal.ts';
import type { World, WorldObject } from './world.ts';

/** The features that only some dialects have. The comment of each feature also says what happens in a dialect that lacks it. */
export interface Features<P extends KubeObject> {
  /** Says which objects are plans. Without it, every object of the kind is a plan, in all namespaces. */
  readonly planObjects?: PlanObjects<P>;
  /** Keeps the record in the plan's status. Without it, a record is written together with the rest of the object. */
  readonly statusRecord?: StatusRecord;
  /** Spreads the record over several objects. Without it, the plan holds every record. */
  readonly sharding?: RecordSharding<P>;
  /** Lets an ended plan run again. Without it, `resolve` itself returns a new rollout after an edit. */
  readonly reruns?: Reruns<P>;
  /**
   * True if the record can contain skipped targets. Without this feature, the plan does not end while a target is held.
   */
  readonly recordsSkips?: true;
  /**
   * Returns the targets that the running plan selects or lists, but that its record lacks. Their state is `pending`
   * since `now` (ms). Without this feature, `resolve` itself adds such targets, or they are unknown.
   */
  joinedTargets?(plan: P, world: World, now: TurnTime): readonly JoinedTarget[];
  /**
   * True if the plans upgrade the controller manager and the scheduler of the cluster, and their leaders hold Leases in
   * kube-system. Then no target starts while one of them does not work. Without this feature, nobody looks at them.
   */
  readonly hasComponentLeases?: true;
  /**
   * Present if the leader may retry failed targets by itself, if a policy requests that. With `unless-late`, it does not
   * retry a target that missed the deadline of the whole target, because its work may never end. Each plan of such a
   * dialect has one target. Without this feature, only people can retry targets.
   */
  readonly ordersRetries?: 'always' | 'unless-late';
  /**
   * Returns what a person does to try failed and skipped targets of the plan again, as an instruction, if `refit retry`
   * cannot do it. Without this feature, `refit retry` can.
   */
  retriedBy?(plan: P): string;
  /**
   * Adds dialect-specific texts to the texts that users read about plans. Without this feature, users read only the
   * texts that the engine writes for plans of every dialect.
   */
  readonly reporting?: Reporting<P>;
  /** Compares versions of nodes with those of the plan. Without it, the engine compares no versions. */
  readonly versions?: Versions<P>;
  /** Adds the rules of the plan to the policy. Without it, only the UpgradePolicy and the defaults apply. */
  readonly planRules?: PlanRules<P>;
  /** Checks a new plan before it starts. Without it, the plan starts without such a check. */
  readonly preconditions?: Preconditions<P>;
  /** Lets the leader cordon, drain and uncordon. Without it, every target does that itself. */
  readonly drainDelegation?: DrainDelegation<P>;
  /**
   * Prevents two plans from working on the same Node at a time. Without this feature, other plans on a Node are
   * ignored, and no Node is claimed.
   */
  readonly nodeSharing?: NodeSharing<P>;
  /** Counts nodes that work for other plans. Without it, their work does not count against the limits of this plan. */
  readonly foreignWork?: ForeignWorkFinder;
  /** Describes the agents on nodes. Without it, the signals need no agent. */
  readonly agents?: Agents;
  /** Knows by which names people call targets. Without it, a target has only its own name. */
  readonly names?: TargetNames;
  /**
   * Returns the namespace and the subject of the NodeRollout of a plan. Without this feature, the NodeRollout is in the
   * namespace of its plan, and a plan without a namespace has no NodeRollout.
   */
  readonly nodeRollouts?: NodeRolloutPlace<P>;
  /**
   * Rolls the targets of a failed run back to their earlier versions. Without this feature, only people do that, and a
   * policy that requests a roll-back only stops the plan.
   */
  readonly rollBack?: RollBack<P>;
  /**
   * Finds work whose plan was deleted. Without this feature, the leader assumes that a deleted plan leaves no work on
   * nodes, so the leader ends no such work.
   */
  readonly orphanedWork?: OrphanedWork<P>;
}

/** Selects which objects of the kind are plans, and states what is special about these objects. */
export interface PlanObjects<P extends KubeObject>
  extends Pick<Selection, 'namespace' | 'fieldSelector'> {
  /** Returns true if the object is a plan, or a part of one. Without this member, every selected object is a plan. */
  isPlan?(object: P): boolean;
  /**
   * Returns the objects that represent the plans, if several objects together are one plan. `objects` are all objects
   * for which `isPlan` is true. If several plans have the same NodeRollout, the last of them writes it. Without this
   * member, each object is a plan of its own.
   */
  representing?(objects: readonly P[]): readonly P[];
  /**
   * Returns the writes that copy to other objects of the plan what people have asked of the object that represents it, so
   * that another object can represent the plan. They are carried out before each reconcile. Without this member, what
   * people ask for is lost together with the object.
   */
  copies?(plan: P, world: World): readonly Instruction[];
  /**
   * Returns the object, whose controls are about to be written, with the proof that Refit wrote them. `before` is the
   * object without the change. Without this member, whoever may write the object controls the plan.
   */
  sealed?(object: P, before: P): P;
  /** Returns the object without the controls that lack this proof. Without this member, all controls count. */
  proved?(object: P): P;
  /**
   * Returns the namespace and the name by which an UpgradePolicy selects the plan, and the uid of the plan. Without this
   * member, they are those of the object.
   */
  referenceOf?(plan: P): Pick<KubeObject['metadata'], 'namespace' | 'name' | 'uid'>;
  /**
   * The prefix of the annotation keys that pause, resume, abort or retry a plan; set if other software reads the plan's annotations,
   * too.
   */
  readonly controlPrefix?: string;
  /** True if the order of targets depends on the plan's uid. The order of a plan that exists only in a file is then unknown. */
  readonly ordersByUid?: boolean;
}

/** Describes a record that is in the status of the plan. The status is written as a subresource. */
export interface StatusRecord {
  /** True if the schema of the status has conditions, which `project` writes. Otherwise the engine writes them to an annotation. */
  readonly hasConditions: boolean;
}

/** Spreads the record of a rollout over several objects; `resolve` reads them through the world. */
export interface RecordSharding<P extends KubeObject> {
  /** Returns how to write the record into the objects that hold it, at `now` (ms). */
  spread(plan: P, record: WholeRecord<P>, world: World, now: number): ShardedRecord<P>;
  /** Returns the objects besides the plan that hold these targets; empty if the plan holds everything. */
  holding(plan: P, targets: readonly Target[], world: World): readonly WorldObject[];
}

/** What is recorded in one turn. */
export interface WholeRecord<P extends KubeObject> {
  /** The result of `project` for the plan. */
  readonly projected: P;
  readonly rollout: Rollout;
  /** The reasons of the targets that this turn lets fail. */
  readonly failures: FailureReasons;
}

/** A record that is spread over several objects. */
export interface ShardedRecord<P extends KubeObject> {
  /** The plan as it must be written, without what the other objects hold. */
  readonly plan: P;
  /**
   * The writes of the changed objects besides the plan. They are carried out before the plan is written, so that a
   * finished target is always recorded in at least one object.
   */
  readonly writes: readonly Instruction[];
  /**
   * The writes to the objects of targets, which are carried out together with the others. If the API server refuses one, only
   * this target lacks its record, and the message is shown for it.
   */
  readonly ofTargets?: readonly TargetWrite[];
  /**
   * The plan with the counts that people read in its metadata. It is written before the status. Undefined if no counts
   * have to be written.
   */
  readonly counted?: P | undefined;
}

/**
 * Lets an ended plan run again. An edit starts a new run only if a policy allows it. If a rollout has `ignoresEdits`,
 * its record contains the spec with which it started, and `resolve` uses that spec instead of the spec in the plan.
 */
export interface Reruns<P extends KubeObject> {
  /** Returns the run that the plan records; undefined if the plan records its first run. */
  recordOf(plan: P): RecordedRun | undefined;
  /** Returns the plan without the record of its runs, but with everything that people have written into it. */
  withoutRecord(plan: P): P;
  /**
   * Returns the version that the last signal of this rollout requested from the target; undefined if the target has no
   * such signal.
   */
  askedOf(world: World, rollout: Rollout, stage: Stage, target: Target): string | undefined;
}

/** The texts that users read about plans. No decision of the leader depends on these members. */
export interface Reporting<P extends KubeObject> {
  /** Returns the name of the Cluster to which the plan belongs; undefined if the plan names no Cluster. */
  clusterOf?(plan: P): string | undefined;
  /** Returns the name of the UpdateConfig that the plan names as its creator; undefined if it names none. */
  updateConfigOf?(plan: P): string | undefined;
  /**
   * Returns one sentence, from the status of the plan, about the facts that the controller could not find out;
   * undefined if it found out everything.
   */
  unknownOf?(plan: P): string | undefined;
  /**
   * Returns warnings about the plan that people should read; an empty list if there are no warnings. `plans` contains
   * all plans with which this plan is compared.
   */
  warnings?(plan: P, world: World, plans: readonly KubeObject[]): readonly string[];
  /**
   * Returns the Events about the change from `before` to `after`, with the texts of another tool that users know. They
   * replace `ours`, which are the Events of the engine about the recorded `rollout`. In this case the engine sends no
   * Events about targets.
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
   * Returns the plan with these stalls in its status, or the same object if nothing changes. `stalls` has one entry for
   * each message. The value of an entry is true if the stall has lasted for some time. `now` is in milliseconds.
   */
  record(plan: P, stalls: ReadonlyMap<string, boolean>, now: number): P;
  /** Returns the text that `record` wrote, for read-only commands; undefined if no target is stalled. */
  of(plan: P): string | undefined;
}

/** Compares the versions of nodes with those of the plan. */
export interface Versions<P extends KubeObject> {
  /**
   * Returns true if the object of a target shows an older version than the version to which the stage upgrades the
   * target.
   */
  isBehind(object: KubeObject, stage: Stage, plan: P): boolean;
  /**
   * Returns what the target lacks after its work has succeeded, if its kubelet does not report the version that the
   * work installed; undefined if nothing is missing. Without this member, success of the work is enough.
   */
  versionGapOf?(
    world: World,
    rollout: Rollout,
    stage: Stage,
    target: Target,
    plan: P,
  ): VersionGap | undefined;
  /**
   * Returns the version that the target ran before this rollout upgraded it, as a record on its object says; undefined
   * if no record says it. Without this member, only the report of the target and the record of the run say it.
   */
  earlierVersionOf?(object: KubeObject, rollout: Rollout, plan: P): string | undefined;
  /**
   * This member is present if the versions of the plan are Kubernetes versions, so that the version skew rules apply to
   * them. Without this member, the rules do not apply.
   */
  readonly skewRules?: SkewRules<P>;
}

/** What the version skew rules need to know about the object of a target. */
export interface SkewRules<P extends KubeObject> {
  /** Returns the version that the object reports; undefined if it reports none. */
  versionOf(object: KubeObject): string | undefined;
  /** Returns true if the object proves that its node runs exactly this version. */
  runs?(object: KubeObject, version: string): boolean;
  /**
   * Returns every API server; undefined if the rules do not apply to this plan. Without this member, the rules apply to
   * every plan, and `endpoints` returns the API servers.
   */
  apiServers?(plan: P, world: World): readonly ApiServer[] | undefined;
  /**
   * Returns the uid of the plan that last upgraded the target; undefined if no plan did. Without this member, the
   * signal on the object says it.
   */
  upgradedBy?(object: KubeObject, plan: P): string | undefined;
  /**
   * The most minor versions by which the distribution supports kubelets that are older than an API server. Without this
   * member, no rule limits that before the start of a plan.
   */
  readonly mostBehind?: number;
  /** True if a target that breaks a rule waits. Without it, a broken rule refuses the whole plan. */
  readonly isWait?: boolean;
}

/** Rules that the plan itself contains, or that result from the way in which its work is done. */
export interface PlanRules<P extends KubeObject> {
  /**
   * Returns the policy with the changes that these rules require. The controller passes no `world`. Read-only commands
   * pass it, and the dialect infers from it how the controller does the work.
   */
  apply(plan: P, policy: RolloutPolicy, world?: World): RolloutPolicy;
  /**
   * Returns the policy with the changes that other objects of the plan require. It follows `apply`, and controllers and
   * commands pass it the world. Without this member, `apply` knows all rules.
   */
  ofParts?(plan: P, policy: RolloutPolicy, world: World): RolloutPolicy;
}

/** Checks a new plan by requests to the API server. */
export interface Preconditions<P extends KubeObject> {
  /** Returns the reasons why the plan must not start yet; empty if it may start. Rejects if the API server does not answer. */
  unmet(client: KubeClient, plan: P, abort?: AbortSignal): Promise<readonly Reason[]>;
}

/** Lets the leader cordon, drain and uncordon for targets. A dialect with this feature must watch Nodes. */
export interface DrainDelegation<P extends KubeObject = KubeObject> {
  /**
   * Returns the Node on which the pods of the target run; undefined if the leader must not drain that Node for the
   * target.
   */
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
   * Returns who cordoned the Node of the target, if the cordon itself names no owner; undefined if that is unknown. A
   * dialect lacks this member if all of its cordons name their owners.
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
   * Returns what prevents the target from starting: the name of another plan that works on the Node of the target, or
   * another obstacle. Only dialects that allow one plan at a time on a Node return the name of a plan. Undefined if the
   * target may start.
   */
  occupantOf(world: World, target: Target, plan: P): string | Obstacle | undefined;
  /** Returns another plan that must end before the targets of `plan` can do their work; undefined if there is none. */
  awaits?(plan: P, world: World): AwaitedPlan | undefined;
  /** The leader claims Nodes before targets start on them. Without it, Nodes are not claimed. */
  readonly claims?: NodeClaims;
}

/** Rules for claims: under which policies a Node is claimed, and how long the claim stays. */
export interface NodeClaims {
  /**
   * Returns under which policies the leader must claim the Node before a target starts on it; undefined if the Node
   * needs no claim.
   */
  needOf(node: Node): ClaimNeed | undefined;
  /**
   * Returns true if any plan works on the Node, even if that plan was deleted or if its record does not show the work.
   * The claim stays while the result is true.
   */
  isAtWork(world: World, node: Node): boolean;
}

/** Finds nodes that work for other plans. Such nodes count against the limits of this plan. */
export interface ForeignWorkFinder {
  /** Returns the work of other plans that counts against the limits of this rollout. */
  list(world: World, rollout: Rollout): readonly ForeignWork[];
  /**
   * Returns the names of nodes with a signal for which there is no proof that a leader sent it. The work of these nodes
   * does not count, but people should be informed about it.
   */
  unproven?(world: World, rollout: Rollout): readonly string[];
}

/** Knows by which names people call targets, and how people may mistake the names that a plan lists. */
export interface TargetNames {
  /**
   * Returns a clause about the object that people probably meant by a name that no object has; undefined if there is no
   * such object. Without this member, the engine says only that the target does not exist.
   */
  meantBy?(name: string, stage: Stage, world: World): string | undefined;
  /**
   * Returns the name of the object for whose sake the target is upgraded, if people know the target by this name, too.
   * `object` is the object of the target.
   */
  subjectOf?(object: KubeObject): string | undefined;
}

/** Describes the agents on nodes, which carry out the signals. */
export interface Agents {
  /** Returns the facts about the agent on the node of a target, as the object of the target shows them. */
  of(object: KubeObject): NodeAgent;
  /**
   * Returns why the host cannot run the version, according to the object; undefined if the host can run it, or if
   * nothing is known.
   */
  unfitFor?(object: KubeObject, version: string): string | undefined;
}

/**
 * Describes, for plans whose kind has no namespace, the namespace of the NodeRollout of a plan and the object to which
 * the NodeRollout refers.
 */
export interface NodeRolloutPlace<P extends KubeObject> {
  /** The namespace of the NodeRollout if the plan has no namespace. */
  readonly namespace?: string;
  /**
   * Returns the object that people regard as the plan. A dialect has this member if that object is not `plan` itself.
   * Returns undefined if `plan` is not a plan. If objects of several kinds can be plans with the same name, `kind` tells
   * their NodeRollouts apart.
   */
  subjectOf?(
    plan: P,
  ):
    | (Readonly<Record<'namespace' | 'name', string>> & { readonly kind?: string | undefined })
    | undefined;
}

/**
 * Rolls the targets of a failed run back to their earlier versions automatically, or describes what people must do
 * instead.
 */
export type RollBack<P extends KubeObject> = RollBackByLeader<P> | RollBackByHand;

/** The leader rolls a run back with a new run of the same plan, so the dialect must have `reruns`. */
export interface RollBackByLeader<P extends KubeObject> {
  /**
   * Returns the plan with the spec that rolls the run back. If that is not possible, returns what the leader must wait
   * for before it can roll back, or why it must never roll back. `now` is in milliseconds.
   */
  planBack(
    scene: RollBackScene<P>,
    now: number,
  ): RollBackPlan<P> | RollBackDelay | RollBackObstacle;
}

export interface RollBackByHand {
  /** Two clauses. They say why the leader cannot roll the run back, and what people must do instead. */
  readonly byHand: string;
}

/** A failed run of a plan, with what the NodeRollout records about this run and about earlier runs. */
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

/**
 * The roll-back cannot begin yet. The leader decides again after `leftMs`, and also when an object that it watches
 * changes.
 */
export interface RollBackDelay {
  /** A sentence without a full stop that says which facts about the targets are not known yet. */
  readonly awaits: string;
  readonly leftMs: number;
}

export interface RollBackObstacle {
  /** A sentence without a full stop that says why the leader must not roll the run back. */
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
  /** A substitute for the deleted plan, with its name and uid. */
  readonly plan: P;
}

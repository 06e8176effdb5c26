/** The optional features of a dialect. The engine does without a feature that a dialect lacks. */
import type { KubeClient, Selection } from '../../kube/client.ts';
import type { KubeObject, Node } from '../../kube/resources.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import type { ClaimNeed, ForeignWork, Obstacle, UnnamedCordon } from '../model/decision.ts';
import type { Reason, ReportedEvent } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';
import type { RecordedRun } from '../model/runs.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Instruction } from './signal.ts';
import type { World, WorldObject } from './world.ts';

/** Features that only some dialects have. Where a member is absent, the engine does without its feature. */
export interface Features<P extends KubeObject> {
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

/** A record that is spread over status shards. */
export interface ShardedRecord<P extends KubeObject> {
  /** The plan as it is to be written, without what the shards hold. */
  readonly plan: P;
  /** Writes of changed status shards. They come first, so that a finished target is always recorded somewhere. */
  readonly writes: readonly Instruction[];
  /** The plan with counts for people in its metadata, when they are due: written before its status. */
  readonly counted?: P | undefined;
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

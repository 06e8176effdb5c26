/** Everything that one decision reads. A snapshot never changes. */
import type { KnownLock } from '../../coordination/tool.ts';
import type { BudgetPods } from '../../drain/budget-pods.ts';
import type { CheckResult } from '../../health/checks.ts';
import type { ComponentReadings } from '../../health/component-monitor.ts';
import type { HookResult } from '../../hooks/rules.ts';
import type { Node } from '../../kube/resources.ts';
import type { ApiServer } from '../../versions/plan-rules.ts';
import type { Asked } from './asked.ts';
import type { AwaitedPlan } from './awaited-plan.ts';
import type { Controls } from './controls.ts';
import type { DecisionsOfPeople } from './decisions-of-people.ts';
import type { LateFacts, TargetFacts } from './facts.ts';
import type { FailureReasons } from './failures.ts';
import type { JoinedTarget } from './joined-target.ts';
import type { PossibleRollBack } from './possible-roll-back.ts';
import type { Reason } from './reasons.ts';
import { type Role, type Rollout } from './rollout.ts';

/** Whether the API server of one controller answered `/readyz` with 2xx. */
export interface EndpointHealth {
  readonly name: string;
  readonly ready: boolean;
  /** True if there was no answer. Perhaps the process that sent the request has no route to the API server. */
  readonly isSilent?: true;
  /** The answer or the error of an API server that is not ready. */
  readonly detail?: string;
}

/**
 * A node that still works for another rollout, because the plan of that rollout was deleted, or was replaced by this
 * plan.
 */
export interface ForeignWork {
  readonly name: string;
  readonly role: Role;
  /** The time of the signal in RFC 3339. It names the attempt. */
  readonly attempt: string;
}

export interface ObservedForeignWork extends ForeignWork {
  /** The time at which this leader first observed the work, in RFC 3339, by the leader's own clock. */
  readonly since: string;
  /** Milliseconds until the work no longer counts. */
  readonly leftMs: number;
}

/** What is known about the plan itself, apart from its rollout. */
export interface PlanFacts {
  readonly controls: Controls;
  /**
   * Undefined while the rollout runs. `isAfterEnd` is true if the spec was changed after the end of the rollout, and undefined if it is not
   * known with which spec the rollout ended; `isNew` is true if no run
   * has begun with that change yet.
   */
  readonly edits: { readonly isAfterEnd: boolean | undefined; readonly isNew: boolean } | undefined;
  /** The targets that joined after the plan began; undefined if the dialect itself adds such targets to the plan. */
  readonly joined: readonly JoinedTarget[] | undefined;
  readonly claim: string | undefined;
  /**
   * The owner that the leader writes into the marks (labels, annotations and locks) that it sets for other tools because of this plan. It
   * is the text of the plan's claim, also in dialects without claims.
   */
  readonly markOwner: string | undefined;
  /**
   * Another plan that must end before the targets of this plan can do their work. A target that started now would only make its
   * node unavailable.
   */
  readonly awaits: AwaitedPlan | undefined;
  /**
   * The decisions of people about all runs of the plan, from its NodeRollout. The NodeRollout is read only when a
   * decision depends on it. `never`: this process does not read it.
   */
  readonly decisions: Asked<DecisionsOfPeople>;
  /** The unmet preconditions of a new plan. `never`: the dialect has no preconditions, or this process does not check them. */
  readonly preconditions: Asked<readonly Reason[]>;
  /**
   * How the leader could roll a failed run back; undefined unless the rollout has failed. `unrecorded`: the NodeRollout does not show the
   * end of the run yet, or was not read.
   */
  readonly rollBack: PossibleRollBack | undefined;
  /**
   * Returns the snapshot that a leader would have before the first start of the plan that rolls the run back. Set if
   * `rollBack` contains such a plan.
   */
  readonly ofRollBack: (() => Snapshot) | undefined;
}

/** What the record, the leader and the distribution of this dialect allow. */
export interface Abilities {
  /** True if the record of the rollout can store the spec with which the rollout started. */
  readonly canIgnoreEdits: boolean;
  /** True if the record of the rollout can store that a target was skipped. */
  readonly canSkip: boolean;
  /** True if the leader may order retries of failed targets by itself. */
  readonly canRetry: boolean;
  /** True if the leader orders no retry of a target that missed the deadline of the whole target. */
  readonly leavesLate: boolean;
  /** What a person does to try failed and skipped targets again, as an instruction, if `refit retry` cannot do it. */
  readonly retriedBy: string | undefined;
  /**
   * True if a target waits while it breaks a version skew rule; false if the whole plan is refused. Plans that never end
   * wait, because their nodes and their version change.
   */
  readonly waitsForVersions: boolean;
  /**
   * The most minor versions by which the distribution supports kubelets that are older than an API server; undefined if
   * only the policy of Kubernetes limits that.
   */
  readonly mostBehind: number | undefined;
  /** True if targets of the dialect may have to download before they start. */
  readonly mustDownload: boolean;
}

/** What this process sees of the cluster. */
export interface ClusterFacts {
  /** The health of every API server of the cluster, whether the plan lists its controller or not. */
  readonly controlPlane: Asked<readonly EndpointHealth[]>;
  /**
   * What is known about the controller manager and the scheduler. For a command, `told` is the message of the leader
   * about them. `never`: this process or this dialect does not watch them.
   */
  readonly components: Asked<ComponentReadings | { readonly told: string }>;
  /** Every API server; undefined if the version skew rules do not apply. */
  readonly apiServers: readonly ApiServer[] | undefined;
  /**
   * All Nodes, because other plans and dialects make Nodes unavailable, too; undefined if Nodes are
   * not watched.
   */
  readonly fleet: readonly Node[] | undefined;
}

/** What is known about work for the plan that is done outside of its targets, and about the work of others. */
export interface OutsideFacts {
  /** The last results of the health checks of the policy; undefined for processes that run no health checks. */
  readonly health: readonly CheckResult[] | undefined;
  /**
   * What is known about the locks of other tools. A lock that was not read yet is missing from the list. Undefined for
   * processes that read no locks.
   */
  readonly locks: readonly KnownLock[] | undefined;
  /** What is known about the runs of hooks; undefined for processes that carry out no hooks. */
  readonly hooks: readonly HookResult[] | undefined;
  /**
   * The pods that PodDisruptionBudgets cover, for policies that sort targets by these pods. `never`: this process does
   * not count them.
   */
  readonly budgetPods: Asked<BudgetPods>;
  readonly foreignWork: readonly ObservedForeignWork[];
}

/** The durations, in milliseconds, within which shares of the targets were done. */
export type Pace =
  /** At least two targets of the rollout have reported their times. No decision depends on `usualMs` and `fastMs`. */
  | {
      readonly kind: 'measured';
      /** The duration within which 90 % of the finished targets were done. */
      readonly mostMs: number;
      /** The duration within which 50 % of the finished targets were done. */
      readonly usualMs: number;
      /** The duration within which 10 % of the finished targets were done. */
      readonly fastMs: number;
    }
  /**
   * For each id of a stage, the duration within which 90 % of its targets were done the last time. It is the expected
   * duration of a target if the last duration of that target is unknown.
   */
  | { readonly kind: 'earlier'; readonly mostMsByStage: Readonly<Record<string, number>> }
  | { readonly kind: 'unknown' };

/** What this leader has learned since its term began. A read-only command learns nothing by itself. */
export interface TermFacts {
  /**
   * Why targets failed, as this leader decided in its term, or for a command, as the NodeRollout shows it. Undefined
   * if nothing is known.
   */
  readonly failures: FailureReasons | undefined;
  /** Milliseconds for which this leader has watched plan and policy ask for the same payloads; undefined for read-only commands. */
  readonly payloadsWatchedMs: number | undefined;
  /** True if this leader has already recorded the rollout in the present reconcile. */
  readonly hasRecorded: boolean;
}

export interface Snapshot {
  readonly rollout: Rollout;
  readonly plan: PlanFacts;
  readonly abilities: Abilities;
  readonly cluster: ClusterFacts;
  readonly outside: OutsideFacts;
  readonly pace: Pace;
  readonly term: TermFacts;
  readonly targets: TargetLookup;
}

/** Finds what is known about targets of the rollout, and about targets that joined, by their keys. */
export interface TargetLookup {
  /** Returns the facts about a target; undefined if there is no such target. */
  get(key: string): TargetFacts | undefined;
  /**
   * Returns the labels of the object of a target without gathering its other facts; undefined if the target has no
   * object, or its object has no labels.
   */
  labelsOf(key: string): Readonly<Record<string, string>> | undefined;
  /**
   * Returns the name of the Node of a target without gathering its other facts; undefined if the Node is unknown, or has
   * the same name as the target.
   */
  nodeNameOf(key: string): string | undefined;
  occupantOf(key: string): LateFacts['occupant'];
  otherWorkOn(key: string): LateFacts['otherWork'];
  unnamedCordonOf(key: string): LateFacts['unnamedCordon'];
  earlierMsOf(key: string): LateFacts['earlierMs'];
  /**
   * The names of pending targets that may already be doing something; undefined if every pending target may already be
   * doing something.
   */
  readonly observable: Pick<ReadonlyMap<string | undefined, unknown>, 'has'> | undefined;
}

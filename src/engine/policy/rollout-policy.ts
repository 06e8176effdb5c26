/** The policy of a rollout: limits, deadlines, drain, windows and rules for downloads. It is plain data, with times in milliseconds. */
import type { ToolName } from '../../coordination/tool.ts';
import { DEFAULT_DRAIN, type DrainOptions } from '../../drain/pods.ts';
import type { HealthRules } from '../../health/checks.ts';
import { type Hook, type HookMoment, isOfPlan } from '../../hooks/rules.ts';
import type { LabelSelector } from '../../kube/resources.ts';
import type { Receiver } from '../../notify/receivers.ts';
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { SilenceRule } from '../../silences/silence.ts';
import type { MaintenanceWindow, Timetable } from '../../util/maintenance-windows.ts';
import type { VersionRule } from '../../versions/plan-rules.ts';
import type { Reason } from '../model/reasons.ts';
import { type Role, SECOND } from '../model/rollout.ts';

/**
 * The steps of one target that have a deadline. answer: the agent must report for the first time · download · drain ·
 * apply: the files are replaced · restart: the new release must be healthy, or rolled back · ready: the node and the
 * API servers must be ready.
 */
export type TimedStep = 'answer' | 'download' | 'drain' | 'apply' | 'restart' | 'ready';

export type NodeLimit = { readonly nodes: number } | { readonly percent: number };

/** A rule of `waves`. A rule that has neither a selector nor a count nor a percentage contains all remaining targets. */
export interface WaveRule {
  readonly selector?: LabelSelector;
  readonly count?: number;
  readonly percent?: number;
  /** Milliseconds between the end of this wave and the start of the next wave. */
  readonly settleMs?: number;
  /** How many members of the wave may fail. If it is undefined, their failures count against the failure budget of the plan. */
  readonly maxFailures?: NodeLimit;
  /** True if no member starts before somebody has approved the wave. */
  readonly needsApproval?: boolean;
}

/** Pins the nodes that the selector selects to this version. No plan changes these nodes to another version. */
export interface Pin {
  readonly selector: LabelSelector;
  readonly version: string;
}

/**
 * The maximum number of attempts of a failed target, including the first attempt, and the pause before the second
 * attempt. The pause doubles with each further attempt.
 */
export interface RetryRule {
  readonly attempts: number;
  readonly backoffMs: number;
}

/** Returns how many of `size` targets may fail. A percentage is rounded down. */
export function failuresAllowed(limit: NodeLimit, size: number): number {
  return 'nodes' in limit ? limit.nodes : Math.floor((size * limit.percent) / 100);
}

/**
 * Returns the maximum total duration of the hooks in milliseconds. If `when` is given, only the hooks of that moment
 * are counted; otherwise all hooks of one target are counted.
 */
export function hooksMs(
  { hooks = [] }: { readonly hooks?: readonly Hook[] | undefined },
  when?: HookMoment,
): number {
  return hooks
    .filter((hook) => (when === undefined ? !isOfPlan(hook.when) : hook.when === when))
    .reduce((sum, { timeoutMs }) => sum + timeoutMs, 0);
}

export interface DrainPolicy {
  readonly enabled: boolean;
  /** True if the work on the node includes its drain, so that the leader does not drain it. */
  readonly byWork?: boolean;
  /**
   * Set if the work on a node starts with the signal and never waits for the leader, so that no hook can run between
   * the drain and the work. The value says whether the work drains the node.
   */
  readonly unheld?: 'withDrain' | 'withoutDrain';
  /** True if the node is cordoned, but no pod is evicted. */
  readonly cordonOnly?: boolean;
  /**
   * True if workers start in the order of their number of pods that PodDisruptionBudgets cover, with the smallest
   * number first.
   */
  readonly startsWithFewest?: boolean;
  /** True if a node is excluded from external load balancers before its first pod is evicted. */
  readonly excludes?: boolean;
  readonly options: DrainOptions;
  /**
   * What happens when a drain misses its deadline. wait: the drain has no deadline · stop: the rollout fails · skip: the target
   * fails and counts against the failure budget · skipNode: the target is skipped, which is no failure · proceed: the upgrade
   * continues without a complete drain.
   */
  readonly onDeadline: 'wait' | 'stop' | 'skip' | 'skipNode' | 'proceed';
  /**
   * True if a node is not cordoned while one of its PodDisruptionBudgets allows no eviction even though all its pods are
   * healthy. Otherwise the drain starts, because an operator may change the budget when it sees the cordon.
   */
  readonly waitsForBudgets?: boolean;
  readonly softTaint: boolean;
  /** Which nodes are uncordoned after the upgrade. ours: only nodes that the rollout cordoned itself · always: any node. */
  readonly uncordon: 'ours' | 'always';
}

export interface RolloutPolicy extends Timetable {
  /** The name of the UpgradePolicy; undefined if no UpgradePolicy covers the plan. */
  readonly name?: string;
  /** The reasons why the UpgradePolicy is invalid. Nothing starts until it is corrected. */
  readonly problems: readonly Reason[];
  readonly paused: boolean;
  /**
   * The thing that pauses the plan, as the subject of a sentence. No further step begins, but an agent finishes the
   * step that it has begun.
   */
  readonly heldBy?: string;
  /** How many targets may fail before the rollout stops. A failed controller always stops it. */
  readonly maxFailures: number;
  /** The percentage of the workers that may fail. Each decision computes `maxFailures` from it. */
  readonly maxFailuresPercent?: number;
  /** How many targets may fail one after the other before the rollout stops; undefined without such a limit. */
  readonly maxConsecutiveFailures?: number;
  /** True if the rollout waits for people once its failure budget is used up. Otherwise it ends. */
  readonly pausesOnFailure?: boolean;
  /** True if the leader takes upgraded targets back to their earlier versions once failures have ended the rollout. */
  readonly rollsBackOnFailure?: boolean;
  /** The rule by which failed targets are tried again without a person; undefined if they are not tried again. */
  readonly retry?: RetryRule;
  /** The waves of the workers, which start one after the other. */
  readonly waves?: readonly WaveRule[];
  /** The label whose values are the domains. Targets are taken from the domains in turn. */
  readonly spread?: string;
  /** The limit of unavailable Nodes for each value of a label. */
  readonly perDomain?: { readonly label: string; readonly limit: NodeLimit };
  /**
   * The number of targets that may be skipped because of slow drains before the rollout stops; undefined if there is no
   * limit.
   */
  readonly maxBlocked?: number;
  /** How many Nodes may be unschedulable or not Ready at once, for any reason. The Node of the next target counts as one of them. */
  readonly maxUnavailable?: NodeLimit;
  /** Labels, as `key` or `key=value`, that decide which targets of a stage start first. */
  readonly order?: readonly string[];
  /** Milliseconds from the intent until the target must be done; Infinity if a step has no deadline. */
  readonly targetDeadlineMs: number;
  /** The deadline of each step in milliseconds. The deadline of `drain` is Infinity if `onDeadline` is `wait`. */
  readonly stepDeadlines: Readonly<Record<TimedStep, number>>;
  /**
   * Milliseconds for which a node must work uncordoned after its upgrade before its slot becomes free; undefined if
   * there is no such time.
   */
  readonly settleMs?: number;
  readonly drain: DrainPolicy;
  /** The checks that must pass before and after each target; undefined if there are none. */
  readonly health?: HealthRules;
  /** The other tools for whose work on nodes the rollout waits; undefined if there are no such tools. */
  readonly coordinate?: readonly ToolName[];
  /** True if the leader writes the lifecycle conditions of the plan's Nodes. */
  readonly nodeConditions?: boolean;
  /** The hooks that must succeed before and after each target, in this order; undefined if there are no hooks. */
  readonly hooks?: readonly Hook[];
  /** The receivers of notifications about the rollout; undefined if there are none. */
  readonly notify?: readonly Receiver[];
  /** The rules for silences of alerts about nodes in progress; undefined if the policy has none. */
  readonly silences?: readonly SilenceRule[];
  /** The plan's own windows; undefined if it has none that apply now. */
  readonly planWindows?: readonly MaintenanceWindow[];
  /**
   * Milliseconds before such a window during which targets may already download; undefined if targets do not download
   * before the window.
   */
  readonly planLeadMs?: number;
  /** The pins that bind nodes to a version. */
  readonly pins?: readonly Pin[];
  readonly allow: ReadonlySet<VersionRule>;
  /** True if a target is done once its work has succeeded, whatever version its kubelet reports. */
  readonly trustsSuccess?: boolean;
  /** True if virtual Nodes are judged and counted like hosts. */
  readonly countsVirtual?: boolean;
  readonly requireSha256: boolean;
  readonly requireHttps: boolean;
  /** True if no target starts while an image of its stage is named without its digest. */
  readonly requireImageDigest?: boolean;
  /**
   * Milliseconds for which a plan waits before its first node if agents report that they cannot download its files;
   * undefined for the default.
   */
  readonly downloadProblemMs?: number;
  /** True if only nodes with Refit's own agent may start. */
  readonly requireAgent: boolean;
  /** True if an edit of a plan that has ended starts a new rollout. */
  readonly restartsEdited: boolean;
  /**
   * Targets with these roles belong to no plan. The options of the leader set this, not an
   * UpgradePolicy.
   */
  readonly excludedRoles?: readonly Role[];
  /** True if the plan ends when an API server is not ready before a controller starts. Otherwise the plan waits. */
  readonly endsNotReady?: boolean;
  /** True if the rollout ends without the workers that people hold or pin to another version. Otherwise it waits for them. */
  readonly leavesOutHeld?: boolean;
  /** True if a plan goes on without the workers whose Nodes were deleted after it began. */
  readonly leavesOutGone?: boolean;
  /** True if workers that join after the rollout began are added to the running rollout. */
  readonly includesNew?: boolean;
  /** True if a running rollout uses the spec with which it started, even after an edit. */
  readonly ignoresEdits?: boolean;
  /**
   * Says which waiting targets download before they start: the targets that come next (`next`), up to 20 targets
   * (`all`), or no target (`none`).
   */
  readonly prefetch: 'next' | 'all' | 'none';
  readonly agent: AgentPolicy;
}

const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

export const AGENT_DEFAULTS = {
  restartTimeoutMs: 90 * SECOND,
  soakMs: 5 * SECOND,
  readyTimeoutMs: 2 * MINUTE,
};

/**
 * Returns the deadline of a restart in milliseconds. The deadline is long enough that an agent can still roll back if
 * it fails at the last moment.
 */
export function restartDeadline(readyMs: number, agent: AgentPolicy = {}): number {
  const { restartTimeoutMs, soakMs } = { ...AGENT_DEFAULTS, ...agent };
  return 2 * restartTimeoutMs + readyMs + soakMs + MINUTE;
}

const READY_MS = 10 * MINUTE;

const STEP_DEADLINES: Readonly<Record<TimedStep, number>> = {
  answer: 5 * MINUTE,
  // The agent has the same limit for one download. A download that makes no progress fails much earlier.
  download: 6 * HOUR,
  drain: HOUR,
  apply: 5 * MINUTE,
  restart: restartDeadline(READY_MS),
  ready: READY_MS,
};

const NEVER = Number.POSITIVE_INFINITY;

/** The deadlines of a policy that limits no step, for a dialect whose work has deadlines of its own. */
export const WITHOUT_DEADLINES: Pick<RolloutPolicy, 'targetDeadlineMs' | 'stepDeadlines'> = {
  targetDeadlineMs: NEVER,
  stepDeadlines: {
    answer: NEVER,
    download: NEVER,
    drain: NEVER,
    apply: NEVER,
    restart: NEVER,
    ready: NEVER,
  },
};

/** Returns the sum of the deadlines in milliseconds; Infinity if a step has none. */
export function sumOf(deadlines: Readonly<Record<TimedStep, number>>): number {
  return Object.values(deadlines).reduce((sum, each) => sum + each, 0);
}

export const DEFAULT_POLICY: RolloutPolicy = {
  problems: [],
  paused: false,
  maxFailures: 0,
  targetDeadlineMs: sumOf(STEP_DEADLINES),
  stepDeadlines: STEP_DEADLINES,
  drain: {
    enabled: true,
    options: DEFAULT_DRAIN,
    onDeadline: 'stop',
    softTaint: true,
    uncordon: 'ours',
  },
  windows: [],
  blackouts: [],
  allow: new Set(),
  requireSha256: false,
  requireHttps: false,
  requireAgent: false,
  restartsEdited: false,
  prefetch: 'next',
  agent: {},
};

/** Returns the default policy with another deadline for targets. With Infinity, no step has a deadline either. */
export function policyWithin(targetDeadlineMs: number): RolloutPolicy {
  return {
    ...DEFAULT_POLICY,
    ...(targetDeadlineMs === NEVER ? WITHOUT_DEADLINES : { targetDeadlineMs }),
  };
}

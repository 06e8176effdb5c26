/** Owns what binds a rollout beside its plan: limits, deadlines, drain, windows and rules. Plain data; times in milliseconds. */
import { DEFAULT_DRAIN, type DrainOptions } from '../../drain/pods.ts';
import type { AgentPolicy } from '../../signal/agent-policy.ts';
import type { Blackout, MaintenanceWindow } from '../../util/maintenance-windows.ts';
import type { VersionRule } from '../../versions/plan-rules.ts';
import type { Reason } from '../model/reasons.ts';

/**
 * Parts of the work on one target that have a deadline of their own. answer: from the signal to the first word of the
 * agent · download · drain · apply: new files take the place of the old · restart: until the new release has proven
 * itself or the old one is back · ready: until the node and the API servers are, and the target is done.
 */
export type TimedStep = 'answer' | 'download' | 'drain' | 'apply' | 'restart' | 'ready';

/** How many nodes, as a number or as a share of all nodes of the cluster. */
export type NodeLimit = { readonly nodes: number } | { readonly percent: number };

export interface DrainPolicy {
  /** False: nodes are neither cordoned nor drained. */
  readonly enabled: boolean;
  readonly options: DrainOptions;
  /** wait: for ever · stop: the rollout fails · skip: the target fails, which the failure budget may bear. */
  readonly onDeadline: 'wait' | 'stop' | 'skip';
  /** Nodes that are still to be done carry a soft taint. */
  readonly softTaint: boolean;
  /** ours: only what the rollout cordoned itself · always: whoever did. */
  readonly uncordon: 'ours' | 'always';
}

export interface RolloutPolicy {
  /** The object that it comes from; absent where nobody wrote one for this plan. */
  readonly name?: string;
  /** Why it cannot be read: nothing starts while there is one, since what it would have forbidden is not known. */
  readonly problems: readonly Reason[];
  /** Nothing starts; what is in flight finishes. */
  readonly paused: boolean;
  /** Targets that may fail before nothing more is started; of controllers none, whatever stands here. */
  readonly maxFailures: number;
  /** Nodes that may be not Ready or unschedulable, whatever made them so, the next target included. */
  readonly maxUnavailable?: NodeLimit;
  /** From the intent until it is done, over all steps; Infinity where one of them is. */
  readonly targetDeadlineMs: number;
  /** The deadline of `drain` is Infinity where it is waited for. */
  readonly stepDeadlines: Readonly<Record<TimedStep, number>>;
  readonly drain: DrainPolicy;
  /** Open at any time where there is none. */
  readonly windows: readonly MaintenanceWindow[];
  readonly blackouts: readonly Blackout[];
  /** Of the plan itself: what starts must lie in one of these too. Absent where the plan has none, or none that counts now. */
  readonly planWindows?: readonly MaintenanceWindow[];
  readonly allow: ReadonlySet<VersionRule>;
  readonly requireSha256: boolean;
  readonly requireHttps: boolean;
  /** What is told to agents with their signal. */
  readonly agent: AgentPolicy;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** What an agent does by itself where nothing is asked of it. */
export const AGENT_DEFAULTS = { restartTimeoutMs: 90 * SECOND, soakMs: 5 * SECOND } as const;

/** Time for an agent to find the new release bad at the last moment, and to put the old one back. */
export function restartDeadline(restartTimeoutMs: number, readyTimeoutMs: number, soakMs: number): number {
  return 2 * restartTimeoutMs + readyTimeoutMs + soakMs + MINUTE;
}

const READY_MS = 10 * MINUTE;

const STEP_DEADLINES: Readonly<Record<TimedStep, number>> = {
  answer: 5 * MINUTE,
  // The agents' own limit: links may be slow, and a download that stands still is given up long before.
  download: 6 * HOUR,
  drain: HOUR,
  apply: 5 * MINUTE,
  restart: restartDeadline(AGENT_DEFAULTS.restartTimeoutMs, READY_MS, AGENT_DEFAULTS.soakMs),
  ready: READY_MS,
};

/** Of work that has deadlines of its own. */
export const WITHOUT_DEADLINES: Pick<RolloutPolicy, 'targetDeadlineMs' | 'stepDeadlines'> = {
  targetDeadlineMs: Number.POSITIVE_INFINITY,
  stepDeadlines: {
    answer: Number.POSITIVE_INFINITY,
    download: Number.POSITIVE_INFINITY,
    drain: Number.POSITIVE_INFINITY,
    apply: Number.POSITIVE_INFINITY,
    restart: Number.POSITIVE_INFINITY,
    ready: Number.POSITIVE_INFINITY,
  },
};

/** All steps together: what holds for a target where nobody says otherwise. */
export function sumOf(deadlines: Readonly<Record<TimedStep, number>>): number {
  return Object.values(deadlines).reduce((sum, each) => sum + each, 0);
}

/** What holds for a plan that no policy covers. */
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
  agent: {},
};

/** The policy of a rollout: limits, deadlines, drain, windows and rules for downloads. Plain data; times in milliseconds. */
import { DEFAULT_DRAIN, type DrainOptions } from '../../drain/pods.ts';
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { MaintenanceWindow, Timetable } from '../../util/maintenance-windows.ts';
import type { VersionRule } from '../../versions/plan-rules.ts';
import { because, type Reason } from '../model/reasons.ts';
import { SECOND, type Stage } from '../model/rollout.ts';

/**
 * Steps of one target with a deadline. answer: the agent's first report · download · drain · apply: replace the files ·
 * restart: until the new release is healthy or rolled back · ready: until the node and the API servers are ready.
 */
export type TimedStep = 'answer' | 'download' | 'drain' | 'apply' | 'restart' | 'ready';

export type NodeLimit = { readonly nodes: number } | { readonly percent: number };

export interface DrainPolicy {
  readonly enabled: boolean;
  /** What runs on the node drains it, not the leader. */
  readonly byWork?: boolean;
  /** Nothing is evicted. */
  readonly cordonOnly?: boolean;
  readonly options: DrainOptions;
  /** wait: without end · stop: the rollout fails · skip: the target fails and counts against the failure budget · proceed: without it. */
  readonly onDeadline: 'wait' | 'stop' | 'skip' | 'proceed';
  readonly softTaint: boolean;
  /** ours: only nodes that the rollout cordoned itself · always: any node. */
  readonly uncordon: 'ours' | 'always';
}

export interface RolloutPolicy extends Timetable {
  /** Name of the UpgradePolicy; absent if none covers the plan. */
  readonly name?: string;
  /** Why it is invalid: nothing starts until it is corrected. */
  readonly problems: readonly Reason[];
  readonly paused: boolean;
  /** Who holds up the plan: no next step begins; what an agent has begun ends. */
  readonly heldBy?: string;
  /** Targets that may fail before the rollout stops; of controllers none. */
  readonly maxFailures: number;
  /** Nodes that may be not Ready or unschedulable for any reason, the next target included. */
  readonly maxUnavailable?: NodeLimit;
  /** `key` or `key=value` of labels: which targets of a stage start first. */
  readonly order?: readonly string[];
  /** From the intent until the target is done. Infinity if a step has no deadline. */
  readonly targetDeadlineMs: number;
  /** That of `drain` is Infinity if `onDeadline` is `wait`. */
  readonly stepDeadlines: Readonly<Record<TimedStep, number>>;
  readonly drain: DrainPolicy;
  /** The plan's own windows; absent if it has none that apply now. */
  readonly planWindows?: readonly MaintenanceWindow[];
  /** Milliseconds before such a window in which targets fetch ahead; none if absent. */
  readonly planLeadMs?: number;
  readonly allow: ReadonlySet<VersionRule>;
  /** Virtual Nodes are judged and counted as hosts. */
  readonly countsVirtual?: boolean;
  readonly requireSha256: boolean;
  readonly requireHttps: boolean;
  /** Nodes whose agent is not Refit's do not start. */
  readonly requireAgent: boolean;
  /** An edit of a plan that has ended starts a new rollout. */
  readonly restartsEdited: boolean;
  /** Which waiting targets fetch their payload: those whose turn is next, more of them, or none. */
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

/** Leaves an agent time to fail at the last moment and roll back. */
export function restartDeadline(readyMs: number, agent: AgentPolicy = {}): number {
  const { restartTimeoutMs, soakMs } = { ...AGENT_DEFAULTS, ...agent };
  return 2 * restartTimeoutMs + readyMs + soakMs + MINUTE;
}

const READY_MS = 10 * MINUTE;

const STEP_DEADLINES: Readonly<Record<TimedStep, number>> = {
  answer: 5 * MINUTE,
  // As in the agent. A download without progress fails long before.
  download: 6 * HOUR,
  drain: HOUR,
  apply: 5 * MINUTE,
  restart: restartDeadline(READY_MS),
  ready: READY_MS,
};

const NEVER = Number.POSITIVE_INFINITY;

/** For a dialect whose work has deadlines of its own. */
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

/** The default policy with another deadline; with Infinity no step has one either. */
export function policyWithin(targetDeadlineMs: number): RolloutPolicy {
  return {
    ...DEFAULT_POLICY,
    ...(targetDeadlineMs === NEVER ? WITHOUT_DEADLINES : { targetDeadlineMs }),
  };
}

/** Why the policy refuses the plan's downloads, one reason for each. */
export function payloadProblems(
  stages: readonly Stage[],
  policy: Pick<RolloutPolicy, 'name' | 'requireSha256' | 'requireHttps'>,
): Reason[] {
  const { name, requireSha256, requireHttps } = policy;
  return downloadsOf(stages).flatMap(({ where, hasHash, isPlain }) => {
    const noHash = because(
      'Unverified',
      `${where} has no sha256, and UpgradePolicy ${name} requires one; spec.payloads.requireSha256: false there lifts this`,
    );
    const plain = because(
      'Unverified',
      `${where} comes over plain http, and UpgradePolicy ${name} requires https; spec.payloads.requireHttps: false there lifts this`,
    );
    return [
      ...(requireSha256 && !hasHash ? [noHash] : []),
      ...(requireHttps && isPlain ? [plain] : []),
    ];
  });
}

/** True if a download that this text of `payloadProblems` names still has that fault. */
export function isStillUnverified(stages: readonly Stage[], message: string): boolean {
  const strict = { requireSha256: true, requireHttps: true };
  // The rest of the sentence names the policy.
  const faults = payloadProblems(stages, strict).map((each) => each.message.split(', and ')[0]);
  return faults.some((fault) => fault !== undefined && message.includes(fault));
}

/** A warning about downloads without a sha256; undefined if all have one. */
export function unverifiedDownloads(stages: readonly Stage[]): string | undefined {
  const unverified = downloadsOf(stages).filter(({ hasHash }) => !hasHash);
  if (unverified.length === 0) return undefined;
  const list = unverified.map(({ where, isPlain }) =>
    isPlain ? `${where} (over plain http)` : where,
  );
  return `no sha256, so nodes run these files unverified: ${list.join(', ')}`;
}

/** Each download once: the stages of one command share them. */
function downloadsOf(stages: readonly Stage[]) {
  const downloads = stages.flatMap(({ command, payloads = {} }) =>
    Object.entries(payloads).map(([platform, { url, sha256 }]) => {
      const where = `the download of command ${command} for ${platform}`;
      return [
        where,
        { where, hasHash: sha256 !== undefined, isPlain: /^http:/i.test(url) },
      ] as const;
    }),
  );
  return [...new Map(downloads).values()];
}

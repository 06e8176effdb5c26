/** The reasons in status, Events, logs and on the command line. `refit why` adds what to do from src/cli/plan-runners.ts. */

/** Every code with what it means; docs/reference/reasons.md is generated from this. */
export const REASONS = {
  Started: 'the rollout has started: its targets are recorded',
  Completed: 'every target is done',
  DoneWithFailures:
    'the plan went on within its failure budget and is over, but some targets failed',
  Stopped: 'the plan ended before every target was done',
  NoTargets: 'the plan lists or selects no target',
  EditedAfterEnd: 'the plan was edited after it ended, and does not run again',
  RestartedAfterEdit: 'the plan was edited after it ended, and starts again, as its policy says',
  VersionDiffers: 'the plan has ended, but a node that it upgraded runs an older version',
  InvalidPlan: 'the plan is invalid',
  RecordUnread: 'part of the recorded status is missing or unreadable',
  RecordRefused:
    'the API server refuses to change the plan, so what was decided cannot be recorded',
  VersionUnknown: 'the version to upgrade to is not known yet',
  ChannelUnanswered: 'the channel has not said yet to which version to upgrade; it is asked again',
  TargetMissing: 'the plan names a target that does not exist',
  PlatformUnknown: 'a target lacks the labels for its operating system and architecture',
  PlatformUnsupported: 'the plan has no payload for the platform of a target',
  TargetFailed: 'a target reported failure',
  TargetRefused:
    'the agent of a target refused the signal by its own rules, or the API server refuses to change its object',
  TargetGone: 'a target was deleted while it was in flight',
  DeadlineExceeded: 'a target did not report within its deadline',
  InFlight: 'a target is in progress',
  Stalled: 'a target is in progress, but what does the work cannot start or does not stay up',
  Intended: 'the attempt is recorded, and the signal will be written next',
  Signalled: 'the signal is written, and the agent has not answered yet',
  NoFreeSlot: 'all slots are taken',
  EarlierStage: 'an earlier stage is not done',
  EarlierNodes: 'nodes that come first in the order of the policy are not done',
  FinishingInFlight: 'nothing new starts after a failure or broken rule; nodes in progress finish',
  ControlPlaneUnknown: 'the API servers have not been probed yet',
  ControlPlaneNotReady: 'an API server is not ready',
  ForeignWork: 'nodes are at work for another plan, or for one that is gone',
  Resumed: 'targets start again after a block',
  NodeNotReady: 'a node is not Ready',
  Resting: 'a node is done and keeps its slot for the rest period of the plan',
  Draining: 'pods are being evicted from a node',
  DrainBlocked:
    'a PodDisruptionBudget or a webhook refuses an eviction, or a pod does not terminate',
  DrainRefused: 'the drain options of the policy forbid the eviction of a pod',
  DrainTooLong: 'a drain did not end within its deadline',
  CannotDecide: 'the API server did not answer a question that the next decision needs',
  DrainPreviewUnknown: 'the drain preview of a node has not been made yet',
  DrainDelegationUnknown: 'it is not known yet whether the node delegates its drain to the leader',
  PreconditionsUnknown: 'the preconditions of the plan have not been checked yet',
  Aborted: 'somebody aborted the plan',
  PlanGone: 'the plan was deleted or is over: Refit ends and cleans up its work on the node',
  PolicyUnreadable: 'the UpgradePolicy of the plan is invalid',
  Paused: 'the plan or its policy is paused',
  WindowClosed: 'no maintenance window is open',
  WindowTooShort: 'the maintenance window would close before a node is done',
  Blackout: 'the policy has a blackout now',
  TooManyUnavailable: 'maxUnavailable nodes are not Ready or unschedulable already',
  AgentRequired: 'the policy requires the agent of Refit, and the node has another one or none',
  AgentInDoubt:
    'the agent of a node does not know whether another one acts there, so no work is sent',
  DownloadsUnchecked: 'agents have not said yet whether they can download what the plan names',
  DownloadImpossible:
    'a node cannot download what the plan names, or has no room for it, and no node has started',
  HostUnfit: 'a host cannot run the version that the plan names, and no node has started',
  Unverified:
    'a download has no sha256, or comes over plain http, although the policy requires them',
  VersionUnchecked:
    'version checks were skipped: a version is unknown or unreadable, or a Node virtual',
  SkippedMinor: 'the plan would skip a minor version',
  Downgrade: 'the plan would put an older version on a node',
  KubeletAhead: 'the plan would make a kubelet newer than an API server',
  RemovedApis: 'objects exist of a kind that the new version no longer serves',
} as const satisfies Readonly<Record<string, string>>;

export type ReasonCode = keyof typeof REASONS;

export interface Reason {
  readonly code: ReasonCode;
  /** One sentence for people: which field or target, what was found, what to do. */
  readonly message: string;
}

export interface ReportedEvent {
  readonly type: 'Normal' | 'Warning';
  /** One of ours, or one that users of a dialect know. */
  readonly reason: Pick<Reason, 'message'> & { readonly code: string };
}

export function because(code: ReasonCode, message: string): Reason {
  return { code, message };
}

const UNASKED: readonly ReasonCode[] = [
  'ControlPlaneUnknown',
  'DrainPreviewUnknown',
  'DrainDelegationUnknown',
  'PreconditionsUnknown',
];

/** Added to the failure of a target that rolled back. */
export const RUNS_AGAIN = 'its previous version runs again';

/** True for a probe that was not made yet: its answer comes within the same reconcile. */
export function isUnasked({ code }: Reason): boolean {
  return UNASKED.includes(code);
}

/** Owns the reasons that Refit gives: the same words in status, events, logs and on the command line. */

/** Every code with what it means; docs/reference/reasons.md is generated from this. */
export const REASONS = {
  Started: 'the targets are resolved and recorded',
  Completed: 'every target is done',
  NoTargets: 'the plan named or selected no target',
  InvalidPlan: 'the plan cannot be carried out as written',
  RecordUnread: 'part of what is recorded of the plan cannot be seen',
  VersionUnknown: 'nobody has told yet to which version the plan leads',
  TargetMissing: 'a target is named that does not exist',
  PlatformUnknown: 'the labels of a target do not tell its operating system and architecture',
  PlatformUnsupported: 'the plan has no payload for the platform of a target',
  TargetFailed: 'a target reported failure',
  TargetGone: 'a target disappeared while it was in flight',
  DeadlineExceeded: 'a target did not report within its deadline',
  InFlight: 'a target is being worked on',
  Intended: 'the intent is recorded, and the signal is about to be written',
  Signalled: 'the signal is written, and the agent has not answered yet',
  NoFreeSlot: 'as many targets are in flight as may be',
  EarlierStage: 'an earlier stage is not done',
  FinishingInFlight: 'a target failed or would break a rule: nothing new starts, and what is in flight may finish',
  ControlPlaneUnknown: 'nobody has asked the API servers yet',
  ControlPlaneNotReady: 'an API server does not answer that it is ready',
  ForeignWork: 'nodes are still at work for a plan that is gone',
  Resumed: 'what held targets back is over',
  NodeNotReady: 'a node is not Ready',
  Resting: 'a node is done, and its slot is free a while later, as its plan says',
  Draining: 'pods are being evicted from a node',
  DrainBlocked: 'a disruption budget does not let a pod go',
  DrainRefused: 'a pod may not be evicted by policy',
  DrainTooLong: 'a drain did not end within its deadline',
  CannotDecide: 'the API server refused or left unanswered what the next decision hangs on',
  DrainPreviewUnknown: 'nobody has looked yet what a drain would meet',
  DrainDelegationUnknown: 'nobody has asked yet whether the node lets the leader drain it',
  PreconditionsUnknown: 'nobody has asked yet what stands against the plan',
  Aborted: 'somebody aborted the plan',
  PlanGone: 'a plan that was deleted, or is over, left something on a node: that is ended, and taken away',
  PolicyUnreadable: 'a policy is for the plan, and cannot be read',
  Paused: 'the policy says that nothing new starts',
  WindowClosed: 'no maintenance window is open',
  WindowTooShort: 'the maintenance window would close before a node is done',
  Blackout: 'the policy lets nothing start at this time',
  TooManyUnavailable: 'as many nodes are not Ready or unschedulable as may be',
  Unverified: 'a download has no sha256, or comes over plain http, and the policy asks for both or one of them',
  VersionUnchecked: 'version checks were skipped: a version is unknown or unreadable',
  SkippedMinor: 'the plan would skip a minor version',
  Downgrade: 'the plan would put an older version on a node',
  KubeletAhead: 'the plan would make a kubelet newer than an API server',
  RemovedApis: 'objects are left of a kind that the new version does not serve any more',
} as const satisfies Readonly<Record<string, string>>;

export type ReasonCode = keyof typeof REASONS;

export interface Reason {
  readonly code: ReasonCode;
  /** One sentence for people: which field or target, what was found, what would be right. */
  readonly message: string;
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

/** Told of a target that failed and has got back what it had. */
export const RUNS_AGAIN = 'its previous version runs again';

/** True where nobody has asked yet: no answer is neither good nor bad, and it comes within the same reconcile. */
export function isUnasked({ code }: Reason): boolean {
  return UNASKED.includes(code);
}

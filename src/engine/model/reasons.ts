/** Defines the reasons that appear in status, Events, logs and on the command line. REMEDIES says what ends the effect of each reason. */

import { capitalized } from '../../util/phrases.ts';

/** Every reason code with its meaning. docs/reference/reasons.md is generated from this object. */
export const REASONS = {
  Started: 'the rollout has started: its targets are recorded',
  Completed: 'every target is done',
  DoneWithFailures:
    'the plan is over; some targets failed, but the failure budget was not exceeded',
  DoneWithSkipped: 'the plan is over, and left out some targets, which keep their version',
  Stopped: 'the plan ended before every target was done',
  NoTargets: 'the plan lists or selects no target',
  EditedAfterEnd: 'the plan was edited after it ended, and does not run again',
  MixedVersions:
    'the plan has ended, and was edited while it ran, so its nodes have different versions',
  EditedWhileRunning: 'the plan was edited while it runs; the message says what takes effect',
  NodeIncluded: 'a node joined after the plan began, and the plan upgrades it, too',
  NodeLeftOut: 'a node joined after the plan began, and the plan does not upgrade it',
  KeptBinaryRemoved:
    'the agent removed the binary that the node kept for a roll-back, because the disk had no room for it and a new download',
  KeptBundleRemoved:
    'the agent removed the airgap bundle of the previous version, because the disk had no room for it and a new download',
  RestartedAfterEdit: 'the plan was edited after it ended, and starts again, as its policy says',
  VersionDiffers: 'the plan has ended, but a node that it upgraded runs an older version',
  InvalidPlan: 'the plan is invalid',
  RecordUnread: 'part of the recorded status is missing or unreadable',
  ControlsUnproved: 'something other than Refit changed the annotations that control the plan',
  RecordRefused:
    'the API server refuses to change the plan, so what was decided cannot be recorded',
  VersionUnknown: 'the version to upgrade to is not known yet',
  ChannelUnanswered: 'the channel has not named a version yet; Refit asks it again',
  TargetMissing: 'the plan names a target that does not exist',
  PlatformUnknown: 'a target lacks the labels for its operating system and architecture',
  PlatformUnsupported: 'the plan has no payload for the platform of a target',
  Excluded: 'the plan includes a node that its agent or the leader excludes from plans',
  TargetFailed: 'a target reported failure',
  TargetRefused:
    'the agent of a target refused the signal by its own rules, or the API server refuses to change its object',
  TargetGone: 'a target was deleted while it was in flight',
  DeadlineExceeded: 'a target did not report within its deadline',
  InFlight: 'a target is in progress',
  Stalled:
    'a target is in progress, but the Job or agent that does the work cannot start or keeps failing',
  Intended: 'the attempt is recorded, and the signal will be written next',
  Signalled: 'the signal is written, and the work on the node has not begun yet',
  NoFreeSlot: 'all slots are taken',
  EarlierStage: 'an earlier stage is not done',
  EarlierNodes: 'nodes that come first in the order of the policy are not done',
  OrderUnknown: 'the pods that decide the order of the nodes are not counted yet',
  FinishingInFlight: 'nothing new starts after a failure or broken rule; nodes in progress finish',
  ControlPlaneUnknown: 'the API servers have not been probed yet',
  ControlPlaneNotReady: 'an API server is not ready',
  ComponentNotWorking: 'the controller manager or the scheduler of the cluster does not work',
  ForeignWork: 'nodes are at work for another plan, or for a plan that was deleted',
  Resumed: 'targets start again, because the block is over',
  NodeNotReady: 'a node is not Ready',
  VersionNotReached:
    'the work on a node succeeded, but the kubelet does not report the version that the plan installs',
  Resting: 'a node is done and keeps its slot for the rest period of the plan',
  Draining: 'pods are being evicted from a node',
  DrainBlocked:
    'a PodDisruptionBudget or a webhook refuses an eviction, or a pod does not terminate',
  DrainRefused: 'the drain options of the policy, or of the plan, forbid the eviction of a pod',
  DrainTooLong: 'a drain did not end within its deadline',
  UncordonTooLong:
    'a node that had done its work was not uncordoned within its deadline, because of what the leader waited for',
  CannotDecide: 'the API server did not answer a question that the next decision needs',
  DrainPreviewUnknown: 'the drain preview of a node has not been made yet',
  DrainDelegationUnknown: 'it is not known yet whether the node delegates its drain to the leader',
  PreconditionsUnknown: 'the preconditions of the plan have not been checked yet',
  Aborted: 'somebody aborted the plan',
  PlanGone: 'the plan was deleted or is over: Refit ends and cleans up its work on the node',
  PolicyUnreadable:
    'the UpgradePolicy of the plan is invalid, or it wants Jobs in a namespace that the controller does not allow',
  Paused: 'the plan or its policy is paused',
  WaveSettles: 'an earlier wave is done, and its settle time is not over',
  WavesSplit:
    'the waves of the policy select some nodes of the plan, but another controller chooses which of them comes next',
  NotChosen: 'another controller chooses which node comes next, and has not chosen this one yet',
  WaveNeedsApproval:
    'the policy wants a person to approve the next wave, and nobody has approved it yet',
  DomainFull:
    'the number of unavailable nodes with the same label value has reached the limit of perDomain',
  PausedByFailures:
    'failures used up the budget, and the policy pauses the plan instead of ending it',
  HealthCheckFailing: 'a health check of the policy fails, or has not passed for long enough',
  HealthUnknown: 'a health check of the policy has no answer',
  Pinned: 'the policy pins the node to another version than that of the plan',
  RetryWaits: 'a node failed, and the policy tries it again after a pause',
  Retried: 'Refit tries a failed node again, because the policy says so',
  RollsBack:
    'failures ended the plan, and the leader rolls its nodes back, because the policy says so',
  RollBackRefused:
    'failures ended the plan, and the leader must not roll its nodes back, although the policy says so',
  ReceiverUnreachable: 'a receiver in `notify` of the policy did not accept a message',
  AlertmanagerUnreachable: 'a silence in `silences` of the policy could not be made or renewed',
  HookRunning: 'a hook of the policy must succeed first; the hook runs or is about to run',
  HookFailed: 'a hook of the policy failed, or did not end within its deadline',
  HookImpossible:
    'a hook of the policy must succeed between the drain and the restart, but the node drains itself and does not wait for it',
  PlanHookFailed:
    'a hook of the policy for the whole plan failed, or did not end within its deadline',
  Held: 'somebody holds the node, so no plan starts on it',
  OtherToolAtWork:
    'another tool that is listed in `coordinate` of the policy is disrupting nodes now',
  WindowClosed: 'no maintenance window is open',
  WindowOpened:
    'a person opened the maintenance window once, so nodes may start although no window is open, or during a blackout',
  WindowTooShort: 'the maintenance window would close before a node is done',
  Blackout: 'the policy has a blackout now',
  TooManyUnavailable:
    'the number of nodes that are unschedulable or not Ready has reached maxUnavailable',
  AgentRequired: 'the policy requires the agent of Refit, and the node has another agent or none',
  AgentInDoubt:
    'the agent of a node does not know whether another agent acts there, so no work is sent',
  DownloadsUnchecked: 'agents have not said yet whether they can download what the plan names',
  DownloadImpossible:
    'a node cannot download what the plan names, or has no room for it, and no node has started',
  DownloadPending:
    'a node downloads what the plan installs before it is cordoned, so that it is unavailable for a shorter time',
  DownloadFailed: 'a node cannot download what the plan installs, so it is not cordoned',
  HostUnfit: 'a host cannot run the version that the plan names, and no node has started',
  Unverified:
    'a download has no sha256 or comes over plain http, or an image has no digest, although the policy forbids that',
  VersionUnchecked:
    'version checks were skipped: a version is unknown or unreadable, or a Node is virtual',
  SkippedMinor: 'the plan would skip a minor version',
  Downgrade: 'the plan would put an older version on a node',
  KubeletAhead: 'the plan would make a kubelet newer than an API server',
  KubeletBehind:
    'a kubelet would be more minor versions older than an API server than the distribution supports',
  RemovedApis: 'objects exist of a kind that the new version no longer serves',
} as const satisfies Readonly<Record<string, string>>;

export type ReasonCode = keyof typeof REASONS;

/** Returns true if the text is the code of a reason. Others may have written the text. */
export function isReasonCode(text: string | undefined): text is ReasonCode {
  return text !== undefined && Object.hasOwn(REASONS, text);
}

/**
 * Says how the effect of a reason ends. `act` is an instruction to a person, and `andThen` says how the person then
 * retries what failed. `ends` is the event that ends the effect without a person, and completes "this ends by itself when
 * …". `null` is for a reason that neither stops nor delays anything.
 */
type Remedy =
  | { readonly act: string; readonly andThen?: string }
  | { readonly ends: string }
  | null;

/**
 * The remedy of every code, which must be true for each dialect. How to start a plan again differs, so `src/cli/plan-runners.ts`
 * adds it.
 */
export const REMEDIES: Readonly<Record<ReasonCode, Remedy>> = {
  Started: null,
  Completed: null,
  DoneWithFailures: { act: 'fix the cause on each failed node, then run `refit retry` for it' },
  DoneWithSkipped: {
    act: 'run `refit unhold` for a held node, remove the pin of a pinned node, and remove what blocked a drain, then run `refit retry --skipped`',
  },
  Stopped: { act: 'fix the failure that `refit why` names, then run `refit retry` for its node' },
  NoTargets: { act: 'correct the node names, the selector or the limit of the plan' },
  EditedAfterEnd: {
    act: 'delete the plan and apply it again, or set `edits.afterEnd: Restart` in its policy',
  },
  MixedVersions: {
    act: 'delete the plan and apply it again, which brings all its nodes to its version; or run `refit rollback`',
  },
  EditedWhileRunning: null,
  NodeIncluded: null,
  NodeLeftOut: {
    act: 'set `newNodes: Include` in the policy before nodes join, or apply the plan again once it has ended',
  },
  KeptBinaryRemoved: {
    act: 'make room on the disk before the next upgrade; going back to that version needs a download of it',
  },
  KeptBundleRemoved: {
    act: 'make room on the disk before the next upgrade; before you go back to that version, place its bundle again',
  },
  RestartedAfterEdit: null,
  VersionDiffers: {
    act: 'find out who put the older version on the nodes, then run the plan again for these nodes',
  },
  InvalidPlan: { act: 'correct the field that the message names' },
  RecordUnread: {
    act: 'restore the object that the message names, or delete the plan and apply it again',
  },
  ControlsUnproved: {
    act: 'find out who changed the annotations that the message names, then run refit pause or refit resume for the plan',
  },
  RecordRefused: {
    act: 'change the admission rule or the right that the message names, so that the leader may write the plan',
  },
  VersionUnknown: { act: 'give the plan a version, or a channel that answers' },
  ChannelUnanswered: {
    act: 'make the server of the channel reachable, or give the plan a version instead',
  },
  TargetMissing: {
    act: 'correct the name or take it out of the plan; if the node is to be upgraded, join it to the cluster first',
  },
  PlatformUnknown: {
    act: 'set the labels kubernetes.io/os and kubernetes.io/arch on the node, or take it out of the plan',
  },
  PlatformUnsupported: {
    act: 'add a download for the platform of the node to the plan, or take the node out of it',
  },
  Excluded: {
    act: 'remove the node from the plan, or start the agent or the controllers of Refit without `--exclude-from-plans`',
  },
  TargetFailed: {
    act: 'fix the cause that the message names',
    andThen: 'run `refit retry` for the node',
  },
  TargetRefused: {
    act: 'correct what the plan asks for, such as its URL, or change the rule that the message names: a flag or the file of the agent, or an admission rule of the API server',
    andThen: 'run `refit retry` for the node',
  },
  TargetGone: {
    act: 'bring the node back, then run `refit retry` for it; or take it out of the plan',
  },
  DeadlineExceeded: {
    act: 'look for what took so long: in the message, on the node, or whether its agent runs and reaches the API server; or raise the deadline in the policy',
    andThen: 'run `refit retry` for the node',
  },
  InFlight: { ends: 'the target has reported success or failure, or a deadline has passed' },
  Stalled: {
    act: 'fix what the message names, such as the image, missing resources, a taint, or a process that exits',
  },
  Intended: { ends: 'the leader has written the signal, which usually takes less than a second' },
  Signalled: {
    act: 'start the agent of the node, if an agent does the work and does not run; without an answer the node fails at its deadline',
  },
  NoFreeSlot: { ends: 'a target in progress is done' },
  EarlierStage: { ends: 'every target of the earlier stage is done' },
  EarlierNodes: { ends: 'the nodes that come first in the order of the policy are done' },
  OrderUnknown: { ends: 'the pods are counted, or cannot be counted' },
  FinishingInFlight: { act: 'fix what the message names; the nodes in progress finish meanwhile' },
  ControlPlaneUnknown: {
    ends: 'the API servers have been probed, which happens in the same reconcile',
  },
  ControlPlaneNotReady: {
    act: 'repair the API server that the message names: its /readyz must answer with ok; if that controller has left the cluster for good, delete its object',
  },
  ComponentNotWorking: {
    act: 'repair the component that the message names: its leader must renew its Lease; if no such component runs in this cluster, delete the Lease',
  },
  ForeignWork: {
    act: 'let the other plan end, or end it with `refit abort`; check that the agents of those nodes run',
  },
  Resumed: null,
  NodeNotReady: { act: 'repair the node, until its kubelet reports Ready' },
  VersionNotReached: {
    act: 'restart the service on the node, such as `systemctl restart k3s`; if that does not help, read the log of the kubelet, and of the Job while it exists',
    andThen: 'run `refit retry` for the node if it has failed',
  },
  Resting: { ends: 'the rest period of the plan is over' },
  Draining: { ends: 'the pods of the node are gone' },
  DrainBlocked: {
    act: 'change the PodDisruptionBudget, unless its operator does so, or the webhook or the pod that the message names; or run more replicas',
  },
  DrainRefused: { act: 'move the pod that the message names, or set the field that it names' },
  DrainTooLong: {
    act: 'remove what blocked the drain, or raise `deadlines.drain` in the policy',
    andThen: 'run `refit retry` for the node',
  },
  UncordonTooLong: {
    act: 'repair what the message names, such as a component of the control plane, an API server, the node itself, or a missing right; or raise the deadline in the policy',
    andThen: 'run `refit retry` for the node',
  },
  CannotDecide: { ends: 'the API server answers; it is asked again after at most a minute' },
  DrainPreviewUnknown: {
    ends: 'the drain preview has been made, which happens in the same reconcile',
  },
  DrainDelegationUnknown: { ends: 'the node has been asked, which happens in the same reconcile' },
  PreconditionsUnknown: {
    ends: 'the preconditions have been checked, which happens in the same reconcile',
  },
  Aborted: { act: 'nothing, if the abort was intended; otherwise start the plan again' },
  PlanGone: { ends: 'Refit has cleaned up its work on the node' },
  PolicyUnreadable: {
    act: 'correct the field of the policy that the message names, list its namespace in `--job-namespaces` of the controller, or update Refit',
  },
  Paused: { act: 'run `refit resume`, or set `paused: false` in the policy' },
  WaveSettles: { ends: 'the settle time of the wave is over' },
  WavesSplit: { act: 'change the waves of the policy, or do what the message says' },
  NotChosen: { ends: 'the other controller chooses the node' },
  WaveNeedsApproval: {
    act: 'run the `refit approve` command that the message names, if the next wave may start',
  },
  DomainFull: {
    act: 'repair or uncordon the nodes that the message names, or raise `perDomain.maxUnavailable` in the policy',
  },
  PausedByFailures: {
    act: 'fix the cause on the failed nodes, then run `refit retry` for them; or run `refit abort`',
  },
  HealthCheckFailing: {
    act: 'repair what the health check is about, as the message says, or change the check in the policy',
  },
  HealthUnknown: {
    act: 'let the check get an answer: its server must be reachable, and the leader needs the right; or let the policy ignore checks without an answer',
  },
  Pinned: {
    act: 'remove the pin from `versions.pin` of the policy, or change its version; or set `holds: Finish` so that the plan ends without the node',
  },
  RetryWaits: { ends: 'the pause before the next attempt is over' },
  Retried: null,
  RollsBack: null,
  RollBackRefused: {
    act: 'fix the cause and run `refit retry` for the failed nodes, or roll the nodes back as the message says',
  },
  ReceiverUnreachable: {
    act: 'repair the receiver, or its address, token or password, as the message says; for 6h, Refit tries again to send the messages that the receiver did not accept',
  },
  AlertmanagerUnreachable: {
    act: 'repair Alertmanager, or the address, the Secret or the matchers of the silence, as the message says; no node waits for that',
  },
  HookRunning: { ends: 'the hook has succeeded, or its deadline has passed' },
  HookFailed: {
    act: 'repair what the hook reports, or change the hook in the policy',
    andThen: 'run `refit retry` for the node, which runs the hook again',
  },
  HookImpossible: {
    act: 'let the controller drain the node, or let the hook run at another moment; a hook with `onFailure: Ignore` is left out on such nodes',
  },
  PlanHookFailed: {
    act: 'repair what the hook reports, or change the hook in the policy',
    andThen: 'run `refit retry` for the plan, which runs its hooks again',
  },
  Held: { act: 'run `refit unhold` for the node, or wait until the hold ends' },
  OtherToolAtWork: {
    act: 'let the other tool finish, or repair it, as the message of `refit why` says; or remove it from `coordinate` of the policy',
  },
  WindowClosed: { ends: 'the next maintenance window opens' },
  WindowOpened: null,
  WindowTooShort: { ends: 'a maintenance window opens that is long enough for a node' },
  Blackout: { ends: 'the blackout is over' },
  TooManyUnavailable: {
    act: 'repair or uncordon the nodes that the message names, or raise `maxUnavailable` in the policy',
  },
  AgentRequired: {
    act: 'start the agent of Refit on the node, or drop `agents.require` from the policy',
  },
  AgentInDoubt: {
    act: 'restart the service on the node, or start the agent with the flag that the message names',
  },
  DownloadsUnchecked: { ends: 'the agents have answered, or after 10 s' },
  DownloadImpossible: {
    act: 'correct the URL in the plan, or repair the server or the network path to it; after `payloads.problemTimeout` of the policy (5m by default) the nodes start anyway',
  },
  DownloadPending: { ends: 'the download is complete' },
  DownloadFailed: {
    act: 'correct the plan, or repair the server or the network path to it; the download is repeated until it succeeds. With `prefetch: None` in the policy, nodes start without it',
  },
  HostUnfit: { act: 'repair the hosts as the message says, or take them out of the plan' },
  Unverified: {
    act: 'add the sha256 or the digest and use https, or set the field of the policy that the message names',
  },
  VersionUnchecked: null,
  SkippedMinor: {
    act: 'upgrade one minor version after the other, or set `versions.allow: [SkippedMinor]` in the policy',
  },
  Downgrade: {
    act: 'name a newer version; to go back on purpose, run `refit rollback`, or set `versions.allow: [Downgrade]` in the policy and take the workers back in an earlier step than the controllers',
  },
  KubeletAhead: {
    act: 'upgrade the API servers first, or set `versions.allow: [KubeletAhead]` in the policy; if the plan goes back to an older version, roll back the newer workers first',
  },
  KubeletBehind: {
    act: 'upgrade the nodes that the message names first, one minor version after the other, or set `versions.allow: [KubeletBehind]` in the policy',
  },
  RemovedApis: {
    act: 'migrate the objects that the message names to a version that is still served, or delete them',
  },
};

/** Returns one sentence for people; undefined for a reason that neither stops nor delays anything. */
export function remedyOf(code: ReasonCode): string | undefined {
  const remedy = REMEDIES[code];
  if (remedy === null) return undefined;
  if ('ends' in remedy) return `This ends by itself when ${remedy.ends}.`;
  const { act, andThen } = remedy;
  return `${capitalized(andThen === undefined ? act : `${act}; then ${andThen}`)}.`;
}

/**
 * Returns what a person does before a retry of what failed for this reason; undefined if a retry does not help, or if the
 * reason does not say what the person can do.
 */
export function actBeforeRetry(code: ReasonCode): string | undefined {
  const remedy = REMEDIES[code];
  return remedy !== null && 'andThen' in remedy ? remedy.act : undefined;
}

/** What may be wrong with a download: it has no sha256, or it comes over plain http. */
export type DownloadFault = 'noSha256' | 'plainHttp';

/** A download that a policy refuses. */
export interface RefusedDownload {
  /** The index of the command in the plan; undefined if the plan has only one command. */
  readonly command: number | undefined;
  /** `<os>-<architecture>`. */
  readonly platform: string;
  readonly fault: DownloadFault;
}

/** The versions that a version rule refuses, in the spelling of the sentence. */
interface RefusedVersions {
  readonly versions: readonly string[];
}

/**
 * The parts of a sentence that code reads, for each code whose sentence has such parts. Details exist only for codes of
 * which code reads a part. TargetFailed, WaveNeedsApproval and RemovedApis have none, because the engine and the CLI only
 * show their sentences.
 */
export interface ReasonDetails {
  readonly HealthCheckFailing: { readonly policy: string | undefined; readonly check: string };
  readonly HookFailed: { readonly policy: string | undefined; readonly hook: string };
  readonly PlanHookFailed: { readonly policy: string | undefined; readonly hook: string };
  readonly Unverified: { readonly downloads: readonly RefusedDownload[] };
  readonly SkippedMinor: RefusedVersions;
  readonly Downgrade: RefusedVersions;
  readonly KubeletAhead: RefusedVersions;
  readonly KubeletBehind: RefusedVersions;
}

export interface Reason {
  readonly code: ReasonCode;
  /** One sentence for people. It says which field or target is meant, what was found, and what to do. */
  readonly message: string;
  /**
   * What the sentence is about. Code reads these details, and never the sentence. A record has only the sentence, so the
   * folder `reasons/` reads the details again where a record is read.
   */
  readonly details?: ReasonDetails[keyof ReasonDetails] | undefined;
}

/** The reason of a whole rollout, which may be about one of its targets. */
export interface RolloutReason extends Reason {
  /**
   * The names of the targets that the reason is about; undefined if it is about no particular target. A record has only
   * the sentence, so the names are read again where a rollout is read.
   */
  readonly about?: readonly string[] | undefined;
}

export interface ReportedEvent {
  readonly type: 'Normal' | 'Warning';
  /** A reason with a code of Refit, or with a code that users of a dialect know from another tool. */
  readonly reason: Pick<Reason, 'message'> & { readonly code: string };
}

/** A code whose reason is only a sentence. */
export type PlainCode = Exclude<ReasonCode, keyof ReasonDetails>;

/** The details that a code needs, as the last arguments of a call. */
export type DetailsFor<Code extends ReasonCode> = Code extends keyof ReasonDetails
  ? [details: ReasonDetails[Code]]
  : [];

/** Returns a reason. `message` is one sentence for people. A code whose sentence has details needs them, too. */
export function because<Code extends ReasonCode>(
  code: Code,
  message: string,
  ...[details]: DetailsFor<Code>
): Reason {
  return details === undefined ? { code, message } : { code, message, details };
}

const UNASKED: readonly ReasonCode[] = [
  'ControlPlaneUnknown',
  'DrainPreviewUnknown',
  'DrainDelegationUnknown',
  'PreconditionsUnknown',
];

/** These words are added to the failure of a target that rolled back. */
export const RUNS_AGAIN = 'its previous version runs again';

/** The codes of the reasons of targets that were not done when a deadline of theirs had passed. */
const MISSED: readonly ReasonCode[] = ['DeadlineExceeded', 'UncordonTooLong'];

/** Returns true if the target failed because a deadline had passed, whatever the target waited for. */
export function isMissedDeadline({ code }: Reason): boolean {
  return MISSED.includes(code);
}

/** Returns true if the probe was not made yet. Its answer then comes within the same reconcile. */
export function isUnasked({ code }: Reason): boolean {
  return UNASKED.includes(code);
}

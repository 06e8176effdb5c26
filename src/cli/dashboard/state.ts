/** Defines what the user interface shows. The page in ui/ imports only this file from src/. */

/** A section of the output of `refit why`: a heading with its lines. */
export interface Said {
  readonly heading: string;
  readonly lines: readonly string[];
  /** True if each line is a command. The page then offers to copy it. */
  readonly areCommands?: true;
}

/** One step of a node, in milliseconds since the Unix epoch. */
export interface LaneStep {
  readonly word: string;
  readonly from: number;
  readonly to: number;
}

export interface NodeState {
  readonly name: string;
  readonly role: string;
  readonly version: string;
  readonly phase: 'done' | 'moving' | 'failed' | 'skipped' | 'pending';
  /**
   * The state and its cause as a text, such as `failed at Restart` with the message of the agent. For a pending node,
   * the cause is why the node has not started.
   */
  readonly state: string;
  readonly message: string;
  /** RFC 3339 time of the last change. */
  readonly since: string;
  readonly from?: string | undefined;
  /**
   * The number of the wave of the node; the first wave is 1. Absent if the plan has no waves, or if the node belongs to
   * the control plane.
   */
  readonly wave?: number | undefined;
  /** The zone of the Node, as its label says. */
  readonly zone?: string | undefined;
  readonly steps: readonly LaneStep[];
  /**
   * The explanation of the node by `refit why`. It is set only in a report, because a page with a server requests it
   * from the server.
   */
  readonly why?: readonly Said[] | undefined;
  /** The sentence that says who holds the node, why, and when the hold ends; absent if nobody holds it. */
  readonly hold?: string;
  /** True if the node waits for something other than its turn, such as an approval or a drain that is blocked. */
  readonly waits?: true;
  /** True if the node is in progress and has waited for longer than a minute. */
  readonly stuck?: true;
  /** True if the node is in progress, but nobody has begun the work: the agent has not answered, or no Job runs. */
  readonly unanswered?: true;
  /** The pods that are left of a drain by the leader, and the PodDisruptionBudgets that block them. */
  readonly drain?: DrainShown;
  /** The labels of the Node, as indexes of the list `labels` of the state. */
  readonly labels?: readonly number[];
}

/** The names are `namespace/name`. `pods` are the first of the `left` pods. */
export interface DrainShown {
  readonly left: number;
  readonly pods?: readonly string[] | undefined;
  readonly budgets?: readonly string[] | undefined;
}

/** An Event of Refit about a node in the run of its plan. */
export interface NodeEvent {
  /** RFC 3339 time. */
  readonly at: string;
  readonly reason: string;
  readonly message: string;
  /** How often it happened in this run; absent if the Event also counts what happened before this run. */
  readonly count?: number;
}

/** The Events about a node, the oldest first. The page asks the server for them. */
export interface NodeEvents {
  readonly events: readonly NodeEvent[];
  /** Why the Events cannot be read. */
  readonly missing?: string;
}

export interface CheckShown {
  readonly name: string;
  readonly state: 'Passing' | 'Failing' | 'Unknown';
  readonly message: string;
}

export interface RunState {
  readonly id: string;
  readonly started: string;
  readonly ended?: string | undefined;
  readonly version: string;
  readonly phase: string;
  readonly done: number;
  readonly total: number;
  /** The id of the trace, if one was sent. */
  readonly traceId?: string | undefined;
  readonly causes: readonly string[];
}

/** A node of an earlier run, as far as the record names it. */
export interface NodeOfRun {
  readonly name: string;
  /** The version before the run; absent if it is not known. */
  readonly from?: string;
  /** The version after the run; absent if the record does not say whether the node got it. */
  readonly to?: string;
  /** Why the node failed; empty if that is not known. */
  readonly failure?: string;
}

/** An earlier run of a plan. The page asks the server for it. */
export interface RunShown {
  readonly started: string;
  readonly ended?: string;
  readonly version: string;
  readonly said: readonly Said[];
  readonly nodes: readonly NodeOfRun[];
}

/** A plan on the page. */
export interface PagePlan {
  /** The text that identifies the plan in requests of the page. */
  readonly key: string;
  readonly title: string;
  readonly phase: string;
  readonly isOpen: boolean;
  readonly versions: string;
  readonly done: number;
  readonly total: number;
  readonly percent: number;
  /** The reason for the pause: `plan` for the annotation of `refit pause`, `policy` for the policy. */
  readonly paused?: 'plan' | 'policy' | undefined;
  /** The number of the wave that waits for an approval. */
  readonly unapproved?: number | undefined;
  /** Names of the failed hooks of the whole plan that can run again. */
  readonly failedHooks?: readonly string[] | undefined;
  /** What keeps nodes from starting until somebody opens the maintenance window. */
  readonly closed?: 'window' | 'blackout';
  /** The names of the health checks that do not pass and that nobody has accepted. */
  readonly acceptable?: readonly string[];
  /** The nodes that the plan has left out and that can be tried again. */
  readonly leftOut?: readonly string[];
  /** How the nodes of the ended plan go back; absent if they cannot. */
  readonly rollBack?:
    | { readonly kind: 'command'; readonly takesImage: boolean }
    | { readonly kind: 'byHand'; readonly sentence: string };
  /** RFC 3339 times between which the plan probably ends. */
  readonly expected?: Readonly<Record<'earliest' | 'latest', string>> | undefined;
  /** Percent, the time that is left, and pauses, as `refit status` shows them; with `expected`, its range is the time that is left. */
  readonly progress: readonly string[];
  readonly started: string;
  readonly ended?: string | undefined;
  readonly wave?: string | undefined;
  /** Who created the plan, such as `UpdateConfig stable`; absent if the plan does not say it. */
  readonly creator?: string | undefined;
  /** The most important line of `why`: it says what blocks the plan or a node, or else what happens now. */
  readonly chief: string;
  /** The explanation of the plan by `refit why`. */
  readonly why: readonly Said[];
  readonly held: readonly string[];
  readonly checks: readonly CheckShown[];
  readonly nodes: readonly NodeState[];
  readonly history: readonly RunState[];
  /** The id of the trace of the last run; absent if no trace was sent. */
  readonly traceId?: string | undefined;
  /** Sums, failures and Events. Only a report has them. */
  readonly report?: readonly Said[] | undefined;
}

export interface DashboardState {
  /** The name of the cluster, as the kubeconfig or the user says; absent if nobody says it. */
  readonly cluster?: string;
  /** RFC 3339 time at which the state was made. */
  readonly at: string;
  /** RFC 3339 time since when the API server does not answer. */
  readonly silentSince?: string | undefined;
  /** True if the page may show buttons that control plans. */
  readonly allowsActions?: boolean;
  /** The user who is signed in. Only a page that the controller serves has it. */
  readonly viewer?: string;
  readonly notes: readonly string[];
  /** Sentences, each of which names a kind of object that the user has no right to read. */
  readonly missing: readonly string[];
  /**
   * Each label of a Node that a plan names, once, as `key=value`. Thousands of Nodes share most labels, so the nodes
   * refer to this list. Only a page that a server serves has it.
   */
  readonly labels?: readonly string[];
  readonly plans: readonly PagePlan[];
}

/** The request that a button sends. `plan` is the key of the plan. */
export type ActionRequest =
  | { readonly action: 'pause'; readonly plan: string; readonly reason?: string }
  | { readonly action: 'resume' | 'retry-hooks'; readonly plan: string }
  | {
      readonly action: 'abort';
      readonly plan: string;
      readonly reason?: string;
      readonly isConfirmed: true;
    }
  | { readonly action: 'approve'; readonly plan: string; readonly wave: number }
  | { readonly action: 'retry'; readonly plan: string; readonly node: string }
  | { readonly action: 'hold'; readonly node: string; readonly reason?: string }
  | { readonly action: 'unhold'; readonly node: string }
  | AskedRequest
  | RollBackRequest;

/**
 * The request for an action that the page asks about first. If `isConfirmed` is false, the server only says what the
 * action would do.
 */
export type AskedRequest = { readonly plan: string; readonly isConfirmed: boolean } & (
  | {
      readonly action: 'start';
      /** How long the window is open, as a text such as `2h`. */
      readonly for: string;
      readonly reason?: string;
      readonly blackouts?: true;
    }
  | { readonly action: 'accept'; readonly check: string; readonly reason?: string }
  | { readonly action: 'retry-skipped' }
);

/** The request for a roll-back. `seen` is the `id` of the answer in which the viewer saw what the roll-back would change. */
export type RollBackRequest = {
  readonly action: 'rollback';
  readonly plan: string;
  readonly reason: string;
  readonly image?: string;
} & (
  | { readonly isConfirmed: false }
  | { readonly isConfirmed: true; readonly typed: 'yes'; readonly seen: string }
);

/** The maximum size of a text to preview, in bytes. It is enough for a plan that lists thousands of nodes. */
export const LONGEST_TEXT = 262_144;

export interface ActionResult {
  readonly isDone: boolean;
  /** The output of the command, or a sentence that says why nothing was done. */
  readonly lines: readonly string[];
  /** Identifies what a roll-back would change. */
  readonly id?: string;
}

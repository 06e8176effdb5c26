/** Defines the hooks of a policy, one run of a hook, and its result. All are plain data, with times in milliseconds. */

/**
 * The moment at which a hook runs. beforePlan: before the first node of a run is started · beforeDrain: before a node
 * is signalled, and therefore before its drain · afterDrain: after the leader has drained the node, and before the work
 * on the node continues · beforeRestart: at the same moment, but after the afterDrain hooks, and also for a node that
 * is not drained · afterVerified: after the upgrade of the node is verified · afterPlan: after a run has ended as done.
 */
export type HookMoment =
  | 'beforePlan'
  | 'beforeDrain'
  | 'afterDrain'
  | 'beforeRestart'
  | 'afterVerified'
  | 'afterPlan';

/** Returns true for a moment of the whole plan. Such a moment does not occur for single nodes. */
export function isOfPlan(when: HookMoment): boolean {
  return when === 'beforePlan' || when === 'afterPlan';
}

/** A Job or a request that a user defines, and that must succeed at one moment of the upgrade of a node, or of a plan. */
export interface Hook {
  /** The names of the hooks of a policy are unique. */
  readonly name: string;
  readonly when: HookMoment;
  readonly action: JobAction | WebhookAction;
  /** Milliseconds that one run may take, including the pauses between its attempts. */
  readonly timeoutMs: number;
  /** True if the upgrade goes on after a failure of the hook. */
  readonly ignoresFailure?: boolean | undefined;
}

/** A hook that creates a Job and waits for its end. */
export interface JobAction {
  readonly kind: 'job';
  readonly namespace: string;
  readonly template: PodTemplate;
  /** True if the pods of the Job must run on the node that is upgraded. */
  readonly pinToNode: boolean;
  /** How many times the Job controller replaces a failed pod. */
  readonly retries: number;
}

/** A hook that sends a signed request to a server. */
export interface WebhookAction {
  readonly kind: 'webhook';
  /** An https URL without credentials. */
  readonly url: string;
  /** The name of the Secret with the key of the signature, in the namespace of the controller. */
  readonly secretName: string;
}

/** A pod template. Only the API server knows all of its fields. */
export interface PodTemplate {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** One run of a hook. */
export interface HookRun {
  /**
   * The name of the run. It is the same for every leader. It is the name of the Job, or the key by which a server
   * recognizes a repeated request.
   */
  readonly id: string;
  readonly hook: Hook;
  /** The environment of the hook. */
  readonly variables: Readonly<Record<string, string>>;
  /** The name of the Node that is upgraded; undefined if the run is for the whole plan. */
  readonly node?: string | undefined;
}

export type HookState = 'running' | 'succeeded' | 'failed';

/** The result of checking a run once. `message` is a clause about the run. */
export interface HookFinding {
  readonly state: HookState;
  readonly message: string;
}

export interface HookResult extends HookFinding {
  readonly id: string;
  /** The name of the hook. */
  readonly hook: string;
  /** The name of the target of the run; undefined if the run is for the whole plan. */
  readonly target?: string | undefined;
  /** The time at which the run changed to this state, in milliseconds since the Unix epoch. */
  readonly since: number;
}

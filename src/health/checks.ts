/** Defines the health checks of a policy and their results. Both are plain data, with times in milliseconds. */

export interface HealthRules {
  /** The names of the checks are unique. */
  readonly checks: readonly HealthCheck[];
  /** True if a check that got no answer keeps nothing from starting. */
  readonly ignoresUnknown?: boolean | undefined;
}

/** One question whose answer must be good before a node starts, and after its upgrade. */
export type HealthCheck = DaemonSetCheck;

interface NamedCheck {
  readonly name: string;
  /** Milliseconds for which the check must pass without a break; undefined if one good answer is enough. */
  readonly forMs?: number | undefined;
}

/** The pods of DaemonSets on the nodes that the plans of the policy upgrade must be Ready. */
export interface DaemonSetCheck extends NamedCheck {
  readonly kind: 'daemonSets';
  /** `critical`: only pods with one of the two priority classes for parts of the system. */
  readonly pods: 'critical' | 'all';
}

/** A check that got no answer is `unknown`. */
export type CheckState = 'passing' | 'failing' | 'unknown';

/** What one round of a check found. */
export interface CheckFinding {
  readonly state: CheckState;
  /** A clause that follows the name of the check. It names the value and its bound, if there are any. */
  readonly message: string;
  /** The Nodes that a failing check is about; undefined if it is about the whole cluster. */
  readonly nodes?: readonly string[] | undefined;
}

export interface CheckResult extends CheckFinding {
  readonly name: string;
  /** When the check took this state, in milliseconds since the Unix epoch. */
  readonly since: number;
  /** When the last round of the check began, in milliseconds since the Unix epoch. */
  readonly at: number;
}

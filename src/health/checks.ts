/** Defines the health checks of a policy and their results. Both are plain data, with times in milliseconds. */

import type { LabelSelector } from '../kube/resources.ts';

export interface HealthRules {
  /** The names of the checks are unique. */
  readonly checks: readonly HealthCheck[];
  /** True if targets may start although the result of a check is unknown. */
  readonly ignoresUnknown?: boolean | undefined;
}

/** A check that must pass before a node starts, and again after its upgrade. */
export type HealthCheck =
  | DaemonSetCheck
  | ResourceCheck
  | AlertCheck
  | MetricCheck
  | HttpCheck
  | JobCheck
  | ReadinessCheck;

interface NamedCheck {
  readonly name: string;
  /** Milliseconds for which the check must pass without interruption; undefined if one good answer is enough. */
  readonly forMs?: number | undefined;
}

/** The pods of DaemonSets on the nodes that the plans of the policy upgrade must be Ready. */
export interface DaemonSetCheck extends NamedCheck {
  readonly kind: 'daemonSets';
  /** `critical` selects only the pods with one of the two priority classes for system components. */
  readonly pods: 'critical' | 'all';
}

/** A CEL expression must be true for each object that is selected. */
export interface ResourceCheck extends NamedCheck {
  readonly kind: 'resources';
  readonly apiVersion: string;
  /** The kind of the objects, such as `StatefulSet`. */
  readonly objectKind: string;
  /**
   * The namespace of the objects. If it is undefined, the check selects objects of all namespaces, or all objects of a
   * cluster-scoped kind.
   */
  readonly namespace?: string | undefined;
  readonly selector?: LabelSelector | undefined;
  /** The expression reads the object as `object`. */
  readonly expression: string;
}

/** A check that asks a server. */
interface ServerCheck extends NamedCheck {
  readonly url: string;
  /** The Secret with credentials, in the namespace of the controller; undefined if the server needs none. */
  readonly secretName?: string | undefined;
}

/** No alert with all of these labels may fire. */
export interface AlertCheck extends ServerCheck {
  readonly kind: 'alerts';
  readonly source: 'prometheus' | 'alertmanager';
  readonly labels: Readonly<Record<string, string>>;
}

/** Each value that a PromQL query returns must be within the bounds. The query must return at least one value. */
export interface MetricCheck extends ServerCheck {
  readonly kind: 'metrics';
  readonly query: string;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

/** A GET request must be answered with a status between 200 and 299. */
export interface HttpCheck extends ServerCheck {
  readonly kind: 'http';
}

/** A Job made from the template must succeed. */
export interface JobCheck extends NamedCheck {
  readonly kind: 'jobs';
  readonly namespace: string;
  /** The `spec` of the Job. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** Milliseconds that the Job may take. */
  readonly timeoutMs: number;
  /**
   * Milliseconds after the end of a successful Job in which its result remains valid. If a node was upgraded after the
   * Job started, the result is not valid any more.
   */
  readonly everyMs: number;
}

/** The cluster must be ready for the version of the plan before the first node of a run starts. */
export interface ReadinessCheck extends NamedCheck {
  readonly kind: 'readiness';
  /** The version. The plan gives it, so the check of a policy lacks it. */
  readonly to?: string;
}

/** The name of the only readiness check of a policy. */
export const READINESS = 'ready';

/** A check that got no answer is `unknown`. */
export type CheckState = 'passing' | 'failing' | 'unknown';

/** The result of one round of a check. */
export interface CheckFinding {
  readonly state: CheckState;
  /**
   * A clause that follows the name of the check. If the check compares a value with a bound, the clause contains the
   * value and the bound.
   */
  readonly message: string;
  /** The Nodes for which the check fails; undefined if the check applies to the whole cluster. */
  readonly nodes?: readonly string[] | undefined;
  /**
   * True while the result is being determined, for example while a Job runs. Nodes then wait, even if the policy
   * ignores unknown checks.
   */
  readonly isPending?: boolean | undefined;
  /**
   * The time to which the answer applies, in milliseconds since the Unix epoch; undefined if this is the start of the
   * round.
   */
  readonly at?: number | undefined;
}

export interface CheckResult extends CheckFinding {
  readonly name: string;
  /** The time at which the check changed to this state, in milliseconds since the Unix epoch. */
  readonly since: number;
  /**
   * The time to which the last answer applies, in milliseconds since the Unix epoch. This is usually the start of the
   * last round of the check.
   */
  readonly at: number;
}

/** Owns what Refit measures about itself, as a contract that any metrics library can fulfil. */
import type { RequestRecord } from '../kube/transport/requester.ts';

/** How one reconcile ended; `terminal` will not be tried again. */
export type ReconcileOutcome = 'success' | 'requeue' | 'error' | 'terminal';

/** Words as everywhere else: phases, gates and reasons. */
export interface PlanMeasure {
  readonly dialect: string;
  /** `namespace/name`, or the name alone. */
  readonly plan: string;
  readonly phase: string;
  /** By phase of the target. */
  readonly targets: ReadonlyMap<string, number>;
  readonly waits: readonly { readonly gate: string; readonly reason: string }[];
}

export interface Metrics {
  reconciled(controller: string, outcome: ReconcileOutcome, seconds: number): void;
  queueDepth(controller: string, depth: number): void;
  /** Fits `ClientOptions.onRequest`. */
  requested(record: RequestRecord): void;
  leading(leading: boolean): void;
  /** Where a plan stands: takes the place of what was told of it before. */
  plan(plan: PlanMeasure): void;
  /** A plan is gone: nothing of it is exposed any more. */
  forgetPlan(dialect: string, plan: string): void;
  /** One step of one target is over. */
  stepDone(dialect: string, step: string, seconds: number): void;
  /** The text that `/metrics` answers, and its content type. */
  expose(): Promise<{ contentType: string; body: string }>;
}

export const noMetrics: Metrics = {
  reconciled: () => undefined,
  queueDepth: () => undefined,
  requested: () => undefined,
  leading: () => undefined,
  plan: () => undefined,
  forgetPlan: () => undefined,
  stepDone: () => undefined,
  expose: () => Promise.resolve({ contentType: 'text/plain', body: '' }),
};

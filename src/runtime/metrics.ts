/** Owns what Refit measures about itself, as a contract that any metrics library can fulfil. */
import type { RequestRecord } from '../kube/requester.ts';

/** How one reconcile ended; `terminal` will not be tried again. */
export type Outcome = 'success' | 'requeue' | 'error' | 'terminal';

export interface Metrics {
  reconciled(controller: string, outcome: Outcome, seconds: number): void;
  queueDepth(controller: string, depth: number): void;
  /** Fits `ClientOptions.onRequest`. */
  requested(record: RequestRecord): void;
  leading(leading: boolean): void;
  /** The text that `/metrics` answers, and its content type. */
  expose(): Promise<{ contentType: string; body: string }>;
}

export const noMetrics: Metrics = {
  reconciled: () => undefined,
  queueDepth: () => undefined,
  requested: () => undefined,
  leading: () => undefined,
  expose: () => Promise.resolve({ contentType: 'text/plain', body: '' }),
};

/** Owns the contract of an order: from the plan as it is to what is written on it, and to what people are told. */
import type { Inspection } from '../status/observe.ts';
import type { PlanView } from '../status/view.ts';

/** The plan as it was seen, and how that looks to people. */
export interface InspectedPlan extends Inspection {
  readonly view: PlanView;
}

export interface Order {
  /** Annotations of the plan to write; null takes one away; none where nothing is to be changed. */
  readonly annotations?: Readonly<Record<string, string | null>>;
  /** Sentences: what was done, and what happens next; told once it is written. */
  readonly said: readonly string[];
}

/**
 * Decides on the plan as it is at this moment; `now` in milliseconds since the Unix epoch.
 *
 * @throws RefitError REFIT_ORDER where the order makes no sense for this plan
 */
export type Decide = (seen: InspectedPlan, now: number) => Order;

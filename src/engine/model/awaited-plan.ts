/** A plan that must wait for another plan. */

/** Another plan for which a plan waits. */
export interface AwaitedPlan {
  /** The plan in messages, such as `Plan upgrades/servers`. */
  readonly plan: string;
  /** A clause that says what ends the wait, such as `Plan upgrades/servers is complete with the same version`. */
  readonly ends: string;
  /**
   * Set if the wait never ends unless a person acts. `why` is a relative clause about the awaited plan, such as `which
   * does not exist`.
   */
  readonly fault?: { readonly why: string; readonly remedy: string };
}

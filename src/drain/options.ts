/** Owns what may be chosen about a drain. */

export interface DrainOptions {
  /** What happens to pods with an `emptyDir` volume, whose content is lost with the pod. */
  readonly localData: 'evict' | 'refuse';
  /** What happens to pods without a controller, which nobody creates anew. */
  readonly unmanagedPods: 'evict' | 'refuse';
  /** Seconds that each pod gets to end; its own where absent. */
  readonly gracePeriodSeconds?: number;
}

/** As k0s drains: everything goes, in its own time. */
export const DEFAULT_DRAIN: DrainOptions = { localData: 'evict', unmanagedPods: 'evict' };

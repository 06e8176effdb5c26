/** The delays that are fixed in k0s, in milliseconds, and a function that shortens them all. */

export interface Times {
  /** The time from the start of the process to the start of its autopilot. */
  readonly boot: number;
  /** The duration of the first request to the status socket, on workers only. */
  readonly firstStatus: number;
  /** The time until a plan that must wait is checked again. */
  readonly planRetry: number;
  /** The time between attempts to set up the ControlNode. */
  readonly setupRetry: number;
  /** The time between attempts of a worker to start its manager. There are at most MANAGER_ATTEMPTS attempts. */
  readonly managerRetry: number;
  readonly leaseDuration: number;
  readonly renewDeadline: number;
  readonly leaseRetry: number;
  /** Limit for one drain. */
  readonly drain: number;
  /** The time between checks whether an evicted pod is gone. */
  readonly podGone: number;
  /** The limit for the readiness check of one controller. */
  readonly readyz: number;
  /** A download is aborted if it receives no byte for this time. */
  readonly stall: number;
}

/** The first two delays were measured. The others are from the original's source. */
const ORIGINAL: Times = {
  boot: 5_000,
  firstStatus: 1_000,
  planRetry: 5_000,
  setupRetry: 10_000,
  managerRetry: 1_000,
  leaseDuration: 60_000,
  renewDeadline: 15_000,
  leaseRetry: 5_000,
  drain: 120_000,
  podGone: 1_000,
  readyz: 60_000,
  stall: 60_000,
};

export const MANAGER_ATTEMPTS = 120;

/** Returns the delays multiplied by `scale`; 1 gives those of the original. The delays of back-offs are never scaled. */
export function timesOf(scale: number): Times {
  return Object.fromEntries(
    Object.entries(ORIGINAL).map(([name, ms]) => [name, ms * scale]),
  ) as Record<keyof Times, number>;
}

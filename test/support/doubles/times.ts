/** The delays that k0s has built in, in milliseconds, and making all of them shorter at once. */

export interface Times {
  /** From the start of the process until its autopilot begins. */
  readonly boot: number;
  /** The first question to the status socket, on workers only. */
  readonly firstStatus: number;
  /** Until a plan that must wait is looked at again. */
  readonly planRetry: number;
  /** Between attempts to set up the ControlNode. */
  readonly setupRetry: number;
  /** Between attempts of a worker to start, up to MANAGER_ATTEMPTS. */
  readonly managerRetry: number;
  readonly leaseDuration: number;
  readonly renewDeadline: number;
  readonly leaseRetry: number;
  /** Limit for one drain. */
  readonly drain: number;
  /** Between looks whether an evicted pod is gone. */
  readonly podGone: number;
  /** Limit for one controller's readiness. */
  readonly readyz: number;
  /** Without a byte a download is given up. */
  readonly stall: number;
}

/** As measured (the first two) and as written in the original's source. */
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

/** A `scale` of 1 is the original; the delays of back-offs are never scaled. */
export function timesOf(scale: number): Times {
  return Object.fromEntries(
    Object.entries(ORIGINAL).map(([name, ms]) => [name, ms * scale]),
  ) as Record<keyof Times, number>;
}

/** Owns how long the agent waits for what: by its flags, and by what the policy asks for one signal. */
import type { AgentPolicy } from '../signal/agent-policy.ts';

/** All in milliseconds. */
export interface Times {
  /** Until a restarted service shows its version. */
  readonly restartTimeoutMs: number;
  /** For which the new process must then stay as it is. */
  readonly soakMs: number;
  /** From its first answer until the node is Ready. */
  readonly readyTimeoutMs: number;
}

/** From the verdict on a new version, the old one is to run again within 90 s, or to be told that it does not. */
const REVIVAL_MS = 80_000;
/** A process that watches for its status can be busy; a socket that is silent for longer is a service that hangs. */
export const SILENCE_MS = 10_000;

/** What a signal's policy asks for wins over the flags. */
export function timesFor(times: Times, policy: AgentPolicy = {}): Times {
  const { restartTimeoutMs, soakMs, readyTimeoutMs } = { ...times, ...policy };
  return { restartTimeoutMs, soakMs, readyTimeoutMs };
}

/** Milliseconds that the previous version has to show itself again. */
export function revivalMs({ restartTimeoutMs }: Times): number {
  return Math.min(restartTimeoutMs, REVIVAL_MS);
}

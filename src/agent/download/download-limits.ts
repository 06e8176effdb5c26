/** Owns what a download may cost and which way it may come: by the agent's flags, and by what the policy asks for one signal. */
import type { AgentPolicy } from '../../signal/agent-policy.ts';

export interface DownloadLimits {
  readonly maxBytes: number;
  /** Milliseconds for all attempts together. */
  readonly totalMs: number;
  /** Milliseconds without a received byte, connecting included. */
  readonly stallMs: number;
  /** True where no redirect may lead to plain http either. */
  readonly requireHttps?: true;
}

/** What a signal's policy asks for wins over the flags. */
export function limitsFor(limits: DownloadLimits, policy: AgentPolicy = {}): DownloadLimits {
  const { downloadTimeoutMs: totalMs = limits.totalMs, requireHttps } = policy;
  return { ...limits, totalMs, ...(requireHttps && { requireHttps }) };
}

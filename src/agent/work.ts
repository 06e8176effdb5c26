/** Owns the description of the work that one signal asks for. */
import type { AgentPolicy } from '../signal/agent-policy.ts';
import type { SignalCommand } from '../signal/codec.ts';
import type { ProcessId } from './service/host.ts';

/** One signal: two with the same three members are the same. */
export interface SignalKey {
  readonly planId: string;
  readonly created: string;
  readonly command: SignalCommand;
}

/** A k0supdate, with what was found when its signal was taken up. */
export interface Work {
  readonly signal: SignalKey;
  /** Absolute path of the binary to replace. */
  readonly binary: string;
  /** Version that ran. */
  readonly from: string;
  /** Process that ran it. */
  readonly original: ProcessId;
  /** What the signal's policy asks for: kept, since no API server may answer while the service is down. */
  readonly policy?: AgentPolicy;
}

/** An airgapupdate: nothing about the host matters to it. */
export interface BundleWork {
  readonly signal: SignalKey;
  readonly policy?: AgentPolicy;
}

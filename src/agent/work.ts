/** Owns the description of the work that one signal asks for. */
import type { SignalCommand } from '../signal/codec.ts';
import type { ProcessId } from './host.ts';

/** One signal: two with the same three members are the same. */
export interface SignalKey {
  readonly planId: string;
  readonly created: string;
  readonly command: SignalCommand;
}

/** What was found when a signal was taken up. */
export interface Work {
  readonly signal: SignalKey;
  /** Absolute path of the binary to replace. */
  readonly binary: string;
  /** Version that ran. */
  readonly from: string;
  /** Process that ran it. */
  readonly original: ProcessId;
}

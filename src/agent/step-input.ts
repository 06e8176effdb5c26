/** Owns everything that a decision of the agent may depend on, as plain data. */
import type { AgentPolicy } from '../signal/agent-policy.ts';
import type { SignalCommand, SignalData } from '../signal/codec.ts';
import type { Journal, UpdateJournal } from './journal.ts';
import type { Cordoner } from './maintenance/duties.ts';
import type { HostFacts } from './service/host.ts';
import type { Times } from './times.ts';

/** What is known of the node that the host is; absent where it was not asked, or nobody knows. */
export interface OwnNodeFacts {
  /** Who cordons it for this signal: asked only where `asksWhoCordons` says so. */
  readonly cordoner?: Cordoner;
  /** True where it bears a cordon of ours: asked only where `waitsForCordon` says so. */
  readonly isCordoned?: boolean;
  /** Its Ready condition; absent where nobody tells one. Asked only while a new process is watched, as the next one. */
  readonly isReady?: boolean;
  /** Present where what it tells is older than the restart: for how long the API server has been seen to say so. */
  readonly silentMs?: number;
}

export interface StepInput {
  /** What the object carries; undefined where it carries no signal, or does not exist. */
  readonly signal: SignalData | undefined;
  /** What the object says that is to be gone by for this signal. */
  readonly policy: AgentPolicy;
  readonly journal: Journal;
  readonly host: HostFacts;
  readonly node: OwnNodeFacts;
  /** Steady milliseconds: they start at any value and never jump. */
  readonly now: number;
  /** As the agent's flags say. */
  readonly times: Times;
  /** Kinds of commands that this agent carries out on its object. */
  readonly accepts: readonly SignalCommand['kind'][];
}

/** With a signal that nothing in the journal is about. */
export interface Fresh extends StepInput {
  readonly signal: SignalData;
}

/** In the middle of an update. */
export interface Working extends StepInput {
  readonly journal: UpdateJournal;
}

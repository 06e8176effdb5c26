/** Everything that a decision of the agent may depend on, as plain data. */
import type { AgentPolicy, SignalCommand, SignalData } from '../signal/annotations.ts';
import type { Journal, UpdateJournal } from './journal.ts';
import type { Cordoner } from './maintenance/node-maintenance.ts';
import type { ServiceFacts } from './service/host.ts';
import type { SignalEnd } from './state/finished-signals.ts';

export type Times = Required<Pick<AgentPolicy, 'restartTimeoutMs' | 'soakMs' | 'readyTimeoutMs'>>;

/** Facts about the host's Node; a fact is absent when it was not asked for or has no answer. */
export interface OwnNodeFacts {
  /** Who cordons, drains and uncordons the node: asked only when `asksWhoCordons` says so. */
  readonly cordoner?: Cordoner;
  /** True when Refit cordoned the node: asked only when `asksForCordon` says so. */
  readonly isCordoned?: boolean;
  /** Its Ready condition: asked only while a new process is watched, like `staleMs`. */
  readonly isReady?: boolean;
  /** Set when the node's last heartbeat is older than the restart: how long the API server has answered so. */
  readonly staleMs?: number;
}

/** When k0s runs its own agent. `observe`: leave the signal to it. `refuse`: fail a new signal. `replace`: act anyway. */
export type BesideK0s = 'observe' | 'refuse' | 'replace';

export interface StepInput {
  /** Undefined when the object carries no signal, or does not exist. */
  readonly signal: SignalData | undefined;
  readonly policy: AgentPolicy;
  readonly journal: Journal;
  readonly host: ServiceFacts;
  readonly node: OwnNodeFacts;
  /** Steady milliseconds: any start value, and no jumps. */
  readonly now: number;
  /** From the flags; a signal's policy overrides them. */
  readonly times: Times;
  /** Kinds of commands that this agent carries out on its object. */
  readonly accepts: readonly SignalCommand['kind'][];
  /** Why the agent's own rules refuse the signal. */
  readonly veto?: string;
  /** Why a new signal has to wait for this host's clock. */
  readonly early?: string;
  /** True when the object shows that an agent of Refit began this signal. */
  readonly isReported?: boolean;
  /** True when the API server does not take the agent's reports. */
  readonly isUnheard?: boolean;
  /** The agent has not read its object, or it is gone: how long a roll-back waits for it (steady milliseconds). */
  readonly unreadUntil?: number;
  /** How an earlier attempt of the same signal ended on this host; absent if the signal is new here. */
  readonly ended?: SignalEnd;
  /** True when the payload of a new signal was fetched ahead, and tried out. */
  readonly isStaged?: boolean;
  /** From the agent's flags; absent: `replace`. */
  readonly beside?: BesideK0s;
}

export interface NewSignalInput extends StepInput {
  readonly signal: SignalData;
}

export interface UpdateInput extends StepInput {
  readonly journal: UpdateJournal;
}

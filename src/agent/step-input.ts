/** Defines everything that a decision of the agent may depend on, as plain data. */
import type {
  AgentPolicy,
  EtcdSnapshot,
  SignalCommand,
  SignalData,
} from '../signal/annotations.ts';
import type { Journal, UpdateJournal } from './journal.ts';
import type { Cordoner } from './maintenance/node-maintenance.ts';
import type { ServiceFacts } from './service/host.ts';
import type { SignalEnd } from './state/finished-signals.ts';

export type Times = Required<Pick<AgentPolicy, 'restartTimeoutMs' | 'soakMs' | 'readyTimeoutMs'>>;

/** Facts about the host's Node. A fact is absent if it was not needed, or if there was no answer. */
export interface OwnNodeFacts {
  /** Says who cordons, drains and uncordons the node. Only present if `asksWhoCordons` returns true. */
  readonly cordoner?: Cordoner;
  /** True if Refit cordoned the node. Only present if `asksForCordon` returns true. */
  readonly isCordoned?: boolean;
  /**
   * True if the node's Ready condition is True. Like `staleMs`, it is only present while a new process is being
   * watched.
   */
  readonly isReady?: boolean;
  /**
   * The time in milliseconds for which the API server has reported that the node's last heartbeat is older than the
   * restart; absent if the heartbeat is newer than the restart.
   */
  readonly staleMs?: number;
}

/**
 * What this agent does if k0s runs its own agent. `observe` leaves the signal to the agent of k0s. `refuse` reports a
 * new signal as failed. `replace` carries out the signal.
 */
export type BesideK0s = 'observe' | 'refuse' | 'replace';

export interface StepInput {
  /** Undefined if the object carries no signal, or does not exist. */
  readonly signal: SignalData | undefined;
  readonly policy: AgentPolicy;
  readonly journal: Journal;
  readonly host: ServiceFacts;
  readonly node: OwnNodeFacts;
  /**
   * The time of the agent's steady clock in milliseconds. The clock may start at any value, and
   * never jumps.
   */
  readonly now: number;
  /** The times from the flags. A signal's policy overrides them. */
  readonly times: Times;
  /** The kinds of commands that this agent carries out on its object. */
  readonly accepts: readonly SignalCommand['kind'][];
  /** Says why the agent's own rules refuse the signal. */
  readonly veto?: string;
  /** Says why a new signal has to wait until this host's clock is right. */
  readonly early?: string;
  /** True if the object shows that an agent of Refit started this signal. */
  readonly isReported?: boolean;
  /**
   * The snapshot of etcd that the object reports for this signal. A program other than this agent may have written it.
   */
  readonly reportedSnapshot?: EtcdSnapshot;
  /** True if the API server does not accept the agent's reports, so that no leader receives them. */
  readonly isUnheard?: boolean;
  /**
   * The time until which a roll-back waits, in milliseconds of the steady clock. Set only if the agent has not read its
   * object, or if the object does not exist.
   */
  readonly unreadUntil?: number;
  /**
   * How an earlier attempt of the same signal ended on this host; absent if the signal is new here.
   */
  readonly ended?: SignalEnd;
  /** True if the payload of a new signal was downloaded before, and has passed its trial run. */
  readonly isStaged?: boolean;
  /** The value of the flag --beside-k0s. If it is absent, `replace` applies. */
  readonly beside?: BesideK0s;
}

export interface NewSignalInput extends StepInput {
  readonly signal: SignalData;
}

export interface UpdateInput extends StepInput {
  readonly journal: UpdateJournal;
}

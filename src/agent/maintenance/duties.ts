/** Owns the contract of what an agent owes its node besides the binary: an empty node before the update, its cordon back after it. */
import type { KubeObject, Node } from '../../kube/types.ts';
import type { AgentDrain } from '../../signal/agent-policy.ts';

/** Who cordons, drains and uncordons for a signal; `unknown` where nobody can be asked, or no leader is there. */
export type Cordoner = 'self' | 'leader' | 'unknown';

/** The time that the policy gives a drain is over; the message tells what is left. */
export class DrainLateError extends Error {
  override readonly name = 'DrainLateError';
}

export interface Duties {
  /** Asked only while the status is Cordoning or UnCordoning, and again every few seconds; `object` carries the signal. */
  whoCordons(object: KubeObject, abort: AbortSignal): Promise<Cordoner>;
  /** The own node as the API server has it now; undefined where the host has none. Rejects where nobody answers soon. */
  readNode(abort: AbortSignal): Promise<Node | undefined>;
  /** True where the own node bears a cordon of ours; false too where the host has no node. */
  hasCordon(abort: AbortSignal): Promise<boolean>;
  /**
   * Cordons the own node in the name of `journalOwner` and drains it as `asked`; harmless when repeated, and nothing where
   * the host has no node. Tries again by itself whatever may pass; rejects with the reason for people where the node can't
   * be emptied, with a DrainLateError where that took too long, both of which end the update as failed, and where `signal`
   * aborts.
   */
  cordonAndDrain(journalOwner: string, asked: AgentDrain, abort: AbortSignal): Promise<void>;
  /**
   * Removes a cordon of ours from the own node, with `always` anybody's; harmless when repeated. Tried again where it
   * rejects.
   */
  takeBack(whose: 'ours' | 'always', abort: AbortSignal): Promise<void>;
}

/** Owns the contract of the object that carries an agent's signals. */
import type { KubeObject } from '../../kube/types.ts';

export interface SignalObject {
  /** The newest state that was seen, by whatever way; undefined where the object does not exist. */
  readonly newest: KubeObject | undefined;
  /** False until the first state was read. */
  readonly isKnown: boolean;
  /** Grows with every change of `newest`. */
  readonly version: number;
  /** Called after each change of `newest`; the returned function ends that. */
  onChange(listener: () => void): () => void;
  /** Watches until `signal` aborts; never rejects. */
  follow(abort: AbortSignal): Promise<void>;
  /** PUT under the object's resourceVersion: rejects with a conflict where anybody else wrote since. */
  write(object: KubeObject): Promise<void>;
  /** Reads the object anew, past all caches. */
  refresh(): Promise<void>;
}

/** Owns the contract of the object that carries an agent's signals. */
import type { KubeObject } from '../../kube/types.ts';
import type { Clock } from '../../util/clock.ts';

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

/** Returns at once where `object` has changed since its version was `seen`; without `ms` there is no time limit. */
export async function changeOrTimeout(
  object: Pick<SignalObject, 'version' | 'onChange'>,
  seen: number,
  ms: number | undefined,
  { clock, stop }: { clock: Clock; stop: AbortSignal },
): Promise<void> {
  if (stop.aborted || object.version !== seen) return;
  await new Promise<void>((resolve) => {
    const wake = (): void => {
      unsubscribe();
      cancelTimer();
      stop.removeEventListener('abort', wake);
      resolve();
    };
    const unsubscribe = object.onChange(wake);
    const cancelTimer = ms === undefined ? () => undefined : clock.schedule(ms, wake);
    stop.addEventListener('abort', wake, { once: true });
  });
}

export interface RegisteredObject extends SignalObject {
  /**
   * Server-side apply: creates the object where there is none, takes the fields over where others have them, and leaves
   * every other field alone. Fields that were claimed before and are not any more are removed.
   */
  claim(fields: KubeObject): Promise<void>;
  /** PUT of the status under the object's resourceVersion: rejects with a conflict where anybody else wrote since. */
  writeStatus(object: KubeObject): Promise<void>;
}

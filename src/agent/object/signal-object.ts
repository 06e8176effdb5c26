/** The object that carries an agent's signals, as the agent sees it. */
import type { KubeObject } from '../../kube/resources.ts';
import type { Clock } from '../../util/clock.ts';

export interface SignalObject {
  /** The newest known state; undefined when the object does not exist. */
  readonly newest: KubeObject | undefined;
  /** False until the first state was read. */
  readonly isKnown: boolean;
  /** Grows with every change of `newest`. */
  readonly version: number;
  /** Calls `listener` after each change of `newest`; the returned function unsubscribes. */
  onChange(listener: () => void): () => void;
  /** Watches until `abort` aborts; never rejects. */
  follow(abort: AbortSignal): Promise<void>;
  /** PUT with the object's resourceVersion: rejects with a conflict when the object has changed. */
  write(object: KubeObject, deadlineMs?: number): Promise<void>;
  refresh(): Promise<void>;
}

/** Waits until the version of `object` is another than `version`, `woken` resolves, or `ms` have passed, if given. */
export async function changeOrTimeout(
  object: Pick<SignalObject, 'version' | 'onChange'>,
  version: number,
  ms: number | undefined,
  { clock, stop, woken }: { clock: Clock; stop: AbortSignal; woken?: Promise<unknown> | undefined },
): Promise<void> {
  if (stop.aborted || object.version !== version) return;
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
    void woken?.then(wake);
  });
}

/** An object that its agent also creates and keeps up to date. */
export interface RegisteredObject extends SignalObject {
  /** Server-side apply with force: creates the object if needed; fields that were claimed before and are missing now go. */
  claim(fields: KubeObject): Promise<void>;
  /** PUT of the status with the object's resourceVersion: rejects with a conflict when the object has changed. */
  writeStatus(object: KubeObject): Promise<void>;
}

/** Runs work for as long as a value stays the same, and starts it anew for the next value. */
import { aborted, onAbort } from '../../util/waits.ts';

export interface Value<T> {
  /** Undefined: nothing to do. */
  current(): T | undefined;
  /** Calls `listener` whenever `current` may have changed; the returned function unsubscribes. */
  onChange(listener: () => void): () => void;
}

/**
 * Runs `work` until `stop` aborts, one run at a time; a change of the value aborts the run. Rejects when a run rejects
 * that was not aborted. A run that resolves is not repeated for the same value.
 */
export async function workForValue<T extends string>(
  value: Value<T>,
  work: (value: T, abort: AbortSignal) => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    const now = value.current();
    const over = new AbortController();
    const check = (): void => {
      if (stop.aborted || value.current() !== now) over.abort();
    };
    using listening = new DisposableStack();
    listening.defer(value.onChange(check));
    listening.use(onAbort(stop, check));
    // The value may have changed before the subscription.
    check();
    if (now !== undefined)
      await work(now, over.signal).catch((error: unknown) => {
        if (!over.signal.aborted) throw error;
      });
    await aborted(over.signal);
  }
}

/** Owns doing some work for as long as a value stands, and anew for the next one. */
import { aborted } from '../util/abort.ts';

export interface Value<T> {
  /** Undefined: there is nothing to work for. */
  current(): T | undefined;
  /** Called whenever `current` may have changed; the returned function ends that. */
  onChange(listener: () => void): () => void;
}

/**
 * Works until `stop` aborts: one run at a time, ended by its signal when the value changes. Rejects where a run does,
 * unless it was ended. A run that resolves by itself is not repeated for the same value.
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
    const unsubscribe = value.onChange(check);
    stop.addEventListener('abort', check, { once: true });
    // What changed before the subscription counts too.
    check();
    try {
      if (now !== undefined) await work(now, over.signal).catch(unless(over.signal));
      await aborted(over.signal);
    } finally {
      unsubscribe();
      stop.removeEventListener('abort', check);
    }
  }
}

function unless(abort: AbortSignal): (error: unknown) => void {
  return (error) => {
    if (!abort.aborted) throw error;
  };
}

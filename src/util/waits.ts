/** Waits: until an abort, until all work has settled, or until it is one's turn. */
/** Resolves when `abort` aborts, at once when it already has. */
export async function aborted(abort: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => onAbort(abort, resolve));
}

/** Calls `listener` when `abort` aborts, at once when it already has; never again after the disposal. */
export function onAbort(abort: AbortSignal | undefined, listener: () => void): Disposable {
  if (abort?.aborted) listener();
  else abort?.addEventListener('abort', listener, { once: true });
  return { [Symbol.dispose]: () => abort?.removeEventListener('abort', listener) };
}

/** Settles as `work` does, or rejects with the reason of `abort` when that comes first. */
export async function untilAborted<T>(work: Promise<T>, abort?: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  using listening = new DisposableStack();
  const reason = (): Error => new Error('aborted', { cause: abort?.reason });
  listening.use(
    onAbort(abort, () => reject(abort?.reason instanceof Error ? abort.reason : reason())),
  );
  // Hears of both, so that the rejection of one that comes later ends no process.
  return await Promise.race([promise, work]);
}

/** As `Promise.all`, but settles only when every promise has: nothing outlives its caller. */
export async function settleAll<T>(running: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(running);
  return await Promise.all(running);
}

/** Limits how many tasks run at a time. The returned function runs one when a place is free, in order, and settles as it does. */
export function semaphore(places: number) {
  let free = places;
  const waiting: (() => void)[] = [];
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The place goes straight to the next in line, so that no later caller overtakes it.
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}

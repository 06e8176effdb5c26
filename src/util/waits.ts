/** Waits until an AbortSignal aborts, until all work has settled, or until a task may start. */
/** Resolves when `abort` aborts, or at once if `abort` has aborted already. */
export async function aborted(abort: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => onAbort(abort, resolve));
}

/**
 * Calls `listener` when `abort` aborts, or at once if `abort` has aborted already. Once the result is disposed of,
 * `listener` is not called any more.
 */
export function onAbort(abort: AbortSignal | undefined, listener: () => void): Disposable {
  if (abort?.aborted) listener();
  else abort?.addEventListener('abort', listener, { once: true });
  return { [Symbol.dispose]: () => abort?.removeEventListener('abort', listener) };
}

/** Settles like `work`, or rejects with the reason of `abort` if `abort` aborts first. */
export async function untilAborted<T>(work: Promise<T>, abort?: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  using listening = new DisposableStack();
  const reason = (): Error => new Error('aborted', { cause: abort?.reason });
  listening.use(
    onAbort(abort, () => reject(abort?.reason instanceof Error ? abort.reason : reason())),
  );
  // The race handles the rejections of both promises. Without the race, a later rejection of the other promise would end the process.
  return await Promise.race([promise, work]);
}

/**
 * Settles like `Promise.all`, but waits until every promise has settled, so that no work continues after its caller has
 * ended.
 */
export async function settleAll<T>(running: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(running);
  return await Promise.all(running);
}

/**
 * Limits how many tasks run at the same time. The returned function starts a task when a place is
 * free, in order of the calls, and settles like the task.
 */
export function semaphore(places: number) {
  let free = places;
  const waiting: (() => void)[] = [];
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The place goes directly to the next waiting task, so that no later caller gets it first.
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}
